-- description: What serves has reached the head of the clock. Behind it while a publish runs.
-- engine: postgres
-- severity: warn
-- model: generations
-- id_columns: [generation_id, backend]
SELECT generation_id, backend
FROM generations
WHERE state = 'serving' AND applied_rev < (SELECT head_rev FROM collection)
