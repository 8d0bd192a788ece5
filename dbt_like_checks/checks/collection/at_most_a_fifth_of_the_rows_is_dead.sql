-- description: Versions that no chunk shows any more are fewer than 20, or at most 20 % of a serving generation.
-- engine: postgres
-- severity: warn
-- model: generations
-- id_columns: [generation_id, backend]
SELECT generation_id, backend
FROM generations
WHERE state = 'serving' AND (
    SELECT count(*) FILTER (WHERE to_rev <= generations.applied_rev) >= 20
       AND count(*) FILTER (WHERE to_rev <= generations.applied_rev)::float > 0.2 * count(*)
    FROM chunk_versions
    WHERE from_rev <= generations.applied_rev AND to_rev > generations.created_rev
)
