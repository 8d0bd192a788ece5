-- description: What is pinned and what serves have the same profile, or a rebuild is at work.
-- engine: postgres
-- model: generations
-- id_columns: [generation_id]
SELECT generation_id
FROM generations
WHERE state = 'serving' AND backend <> 'postgres'
  AND embedding_profile IS DISTINCT FROM (SELECT embedding_profile FROM collection)
  AND NOT EXISTS (SELECT 1 FROM rebuilds WHERE state IN ('requested', 'building'))
