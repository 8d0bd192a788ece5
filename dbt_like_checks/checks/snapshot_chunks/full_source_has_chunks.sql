-- description: A source published in full has chunks; without any, everything of it disappears.
-- engine: parquet
-- severity: warn
-- model: manifest_sources
-- id_columns: [source_id]
SELECT declared.source_id
FROM manifest_sources AS declared
WHERE declared.mode = 'full'
  AND NOT EXISTS (SELECT 1 FROM chunks WHERE chunks.source_id = declared.source_id)
