-- description: The index holds every chunk version that it must hold.
-- engine: parquet
-- model: expected_items
-- id_columns: [object_id, chunk_id]
SELECT expected.object_id, expected.chunk_id
FROM expected_items AS expected
WHERE expected.is_settled
  AND NOT EXISTS (SELECT 1 FROM index_items AS held WHERE held.object_id = expected.object_id)
