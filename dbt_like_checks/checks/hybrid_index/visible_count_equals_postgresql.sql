-- description: The index shows as many chunks at the revision it has reached as PostgreSQL does.
-- engine: parquet
-- model: hybrid_index
-- id_columns: [generation_id]
SELECT generation_id
FROM hybrid_index
WHERE (
    SELECT count(*) FROM index_items AS held
    WHERE held.from_rev <= applied_rev AND applied_rev < held.to_rev
      AND NOT EXISTS (
        SELECT 1 FROM expected_items AS expected
        WHERE expected.object_id = held.object_id AND NOT expected.is_settled
      )
) <> (SELECT count(*) FROM expected_items WHERE is_visible AND is_settled)
