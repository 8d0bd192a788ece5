-- description: At most half of the chunks have an empty title.
-- engine: parquet
-- severity: warn
-- model: chunks
-- column: title
SELECT count(*) AS chunk_count
FROM chunks
HAVING 2 * count(*) FILTER (WHERE coalesce(title, '') = '') > count(*)
