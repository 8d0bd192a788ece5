-- description: Every chunk that serves has a vector of the embedding profile that serves.
-- engine: postgres
-- model: chunks
-- id_columns: [chunk_id]
SELECT chunks.chunk_id
FROM chunks
JOIN generations ON generations.state = 'serving' AND generations.embedding_profile IS NOT NULL
WHERE NOT EXISTS (
    SELECT 1 FROM vectors
    WHERE vectors.profile = generations.embedding_profile
      AND vectors.text_hash = chunks.text_hash
)
