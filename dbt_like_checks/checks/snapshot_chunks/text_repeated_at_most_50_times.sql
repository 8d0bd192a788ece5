-- description: No text stands in more than 50 chunks, as licence headers and boilerplate do.
-- engine: parquet
-- severity: warn
-- model: chunks
-- column: text
-- id_columns: [chunk_id]
SELECT min(chunk_id) AS chunk_id
FROM chunks
GROUP BY text
HAVING count(*) > 50
