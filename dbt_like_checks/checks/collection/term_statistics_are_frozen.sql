-- description: Term statistics exist for the serving revision; without them words cannot be ranked.
-- engine: postgres
-- model: collection
-- id_columns: [slug]
SELECT slug
FROM collection
WHERE serving_rev > 0
  AND NOT EXISTS (SELECT 1 FROM term_statistics WHERE from_rev <= serving_rev)
