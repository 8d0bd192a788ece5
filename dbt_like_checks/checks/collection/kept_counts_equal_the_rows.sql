-- description: The counts that every publish keeps, instead of counting, are those of the rows.
-- engine: postgres
-- model: collection
-- id_columns: [counted]
SELECT 'chunks visible at the head' AS counted
FROM collection
WHERE open_chunks <> (SELECT count(*) FROM chunk_versions WHERE to_rev = 2147483647)
UNION ALL
SELECT 'items of generation ' || generation_id
FROM generations
WHERE state = 'serving'
  AND items <> (
      SELECT count(*) FROM chunk_versions
      WHERE from_rev <= generations.applied_rev AND to_rev > generations.created_rev
  )
