-- description: No revision of the index shows two versions of one chunk.
-- engine: parquet
-- model: index_items
-- id_columns: [chunk_id]
SELECT chunk_id
FROM (
    SELECT
        expected.chunk_id,
        held.from_rev < max(held.to_rev) OVER (
            PARTITION BY expected.chunk_id
            ORDER BY held.from_rev, held.object_id
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS is_early
    FROM index_items AS held
    JOIN expected_items AS expected USING (object_id)
    WHERE expected.is_settled
)
WHERE is_early
GROUP BY chunk_id
