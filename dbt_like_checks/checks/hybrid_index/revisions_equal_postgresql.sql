-- description: Items are visible in the index from and to the revisions that PostgreSQL says.
-- engine: parquet
-- model: index_items
-- id_columns: [object_id, chunk_id]
SELECT object_id, expected.chunk_id
FROM index_items AS held
JOIN expected_items AS expected USING (object_id)
WHERE expected.is_settled
  AND (held.from_rev <> expected.from_rev OR held.to_rev <> expected.to_rev)
