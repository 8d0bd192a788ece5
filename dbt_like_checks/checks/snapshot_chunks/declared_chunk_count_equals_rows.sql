-- description: The manifest declares for each source exactly the chunks that are there.
-- engine: parquet
-- model: manifest_sources
-- id_columns: [source_id]
SELECT declared.source_id
FROM manifest_sources AS declared
LEFT JOIN (
    SELECT source_id, count(*) AS row_count FROM chunks GROUP BY source_id
) AS found ON found.source_id = declared.source_id
WHERE declared.chunk_count IS DISTINCT FROM coalesce(found.row_count, 0)
