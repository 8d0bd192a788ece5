-- description: The index lets the same users and groups read a chunk as PostgreSQL does.
-- engine: parquet
-- model: index_items
-- id_columns: [object_id, chunk_id]
SELECT object_id, expected.chunk_id
FROM index_items AS held
JOIN expected_items AS expected USING (object_id)
WHERE expected.is_settled AND held.acl IS DISTINCT FROM expected.acl
