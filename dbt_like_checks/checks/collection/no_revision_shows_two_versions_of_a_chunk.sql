-- description: The versions of a chunk follow one another and do not overlap.
-- engine: postgres
-- model: chunk_versions
-- id_columns: [chunk_id]
SELECT DISTINCT chunk_id
FROM (
    SELECT
        chunk_id,
        from_rev < lag(to_rev) OVER (PARTITION BY chunk_id ORDER BY from_rev, to_rev) AS is_early
    FROM chunk_versions
) AS versions
WHERE is_early
