-- description: Once anything serves, exactly one revision of every index kind does.
-- engine: postgres
-- model: index_revisions
-- id_columns: [kind]
WITH serving AS (
    SELECT kind FROM index_revisions WHERE state IN ('Ready', 'Rebuilding', 'Degraded')
),
kinds AS (
    SELECT unnest(ARRAY['full_text', 'metadata']) AS kind
    UNION
    SELECT 'vector' WHERE EXISTS (
        SELECT 1 FROM generations
        WHERE state = 'serving' AND embedding_profile IS NOT NULL
    )
)
SELECT kinds.kind
FROM kinds
WHERE EXISTS (SELECT 1 FROM serving)
  AND (SELECT count(*) FROM serving WHERE serving.kind = kinds.kind) <> 1
