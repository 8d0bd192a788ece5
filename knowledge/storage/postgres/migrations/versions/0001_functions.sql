-- Functions the application role calls. `security definer` ones read the tenant from the setting,
-- never from an argument, so that GIN indexes stay usable (&&, @> are not leakproof under a policy).

-- A client's secret hash, for the token endpoint, where no tenant is known yet.
create function client_for_token(p_client text)
    returns table (client_id text, tenant_id text, secret_hash bytea, scopes text[])
    language sql stable security definer set search_path = knowledge, pg_temp
    as $$
        select c.client_id, c.tenant_id, c.secret_hash, c.scopes
        from clients c where c.client_id = p_client and c.revoked_at is null
    $$;

-- Chunks whose words meet p_terms, best first by the summed weight of the words found.
-- The caller rescores the few rows with the frozen statistics.
create function search_full_text(
    p_collection uuid, p_rev integer, p_project text, p_sources text[], p_acl text[],
    p_terms text[], p_weights double precision[], p_limit integer,
    p_prefix text default null, p_kind text default null, p_language text default null,
    p_tags text[] default null, p_updated_after timestamptz default null)
    returns table (object_id uuid, score double precision)
    language sql stable security definer set search_path = knowledge, pg_temp
    as $$
        select c.object_id,
               (select sum(q.weight) from unnest(p_terms, p_weights) as q(term, weight)
                where q.term = any(c.terms)) as score
        from chunk_versions c
        where c.tenant_id = current_tenant() and c.collection_id = p_collection
          and c.terms && p_terms
          and c.from_rev <= p_rev and p_rev < c.to_rev
          and c.project_id = p_project and c.source_id = any(p_sources)
          and (c.acl is null or c.acl && p_acl)
          and (p_prefix is null or starts_with(c.path, p_prefix))
          and (p_kind is null or c.kind = p_kind)
          and (p_language is null or c.language = p_language)
          and (p_tags is null or c.tags @> p_tags)
          and (p_updated_after is null or c.updated_at >= p_updated_after)
        order by score desc, c.object_id limit p_limit
    $$;

-- Chunks whose path, title and tags hold at least p_coverage of the summed weight of p_terms.
-- The lightest (most common) words together weigh less than that, so a hit must hold one of the
-- others: only those are looked up in the index.
create function search_metadata(
    p_collection uuid, p_rev integer, p_project text, p_sources text[], p_acl text[],
    p_terms text[], p_weights double precision[], p_coverage double precision, p_limit integer,
    p_prefix text default null, p_kind text default null, p_language text default null,
    p_tags text[] default null, p_updated_after timestamptz default null)
    returns table (object_id uuid, score double precision)
    language sql stable security definer set search_path = knowledge, pg_temp
    as $$
        select hit.object_id, hit.score from (
            select c.object_id, cardinality(m.terms) as size,
                   (select sum(q.weight) from unnest(p_terms, p_weights) as q(term, weight)
                    where q.term = any(m.terms)) / (select sum(w) from unnest(p_weights) w) as score
            from metadata_items m join chunk_versions c using (object_id)
            where m.tenant_id = current_tenant() and m.collection_id = p_collection
              and m.terms && (
                  select array_agg(w.term) from (
                      select term, sum(weight) over (order by weight, term) as upto,
                             sum(weight) over () as total
                      from unnest(p_terms, p_weights) as q(term, weight)
                  ) w where w.upto >= p_coverage * w.total)
              and c.from_rev <= p_rev and p_rev < c.to_rev
              and c.project_id = p_project and c.source_id = any(p_sources)
              and (c.acl is null or c.acl && p_acl)
              and (p_prefix is null or starts_with(c.path, p_prefix))
              and (p_kind is null or c.kind = p_kind)
              and (p_language is null or c.language = p_language)
              and (p_tags is null or c.tags @> p_tags)
              and (p_updated_after is null or c.updated_at >= p_updated_after)
        ) hit
        where hit.score >= p_coverage
        order by hit.score desc, hit.size, hit.object_id limit p_limit
    $$;

-- Term statistics of a collection, frozen from revision p_rev on, over the chunks visible there.
-- Returns the number of documents.
create function freeze_statistics(p_collection uuid, p_rev integer) returns integer
    language plpgsql security definer set search_path = knowledge, pg_temp
    as $$
    declare
        v_tenant text := current_tenant();
        v_count integer;
    begin
        if not exists (select from collections where collection_id = p_collection and tenant_id = v_tenant) then
            return 0;
        end if;
        delete from term_frequencies where collection_id = p_collection and from_rev = p_rev;
        insert into term_statistics
            select v_tenant, p_collection, p_rev, count(*),
                   coalesce(avg(split_part(words, ' ', 1)::integer), 0),
                   coalesce(avg(split_part(title_words, ' ', 1)::integer), 0)
            from chunk_versions
            where collection_id = p_collection and from_rev <= p_rev and p_rev < to_rev
        on conflict (collection_id, from_rev) do update set
            documents = excluded.documents, average_length = excluded.average_length,
            average_title_length = excluded.average_title_length
        returning documents into v_count;
        insert into term_frequencies
            select v_tenant, p_collection, p_rev, term, sum(in_text), sum(in_title) from (
                select term, count(*) as in_text, 0 as in_title
                from chunk_versions, unnest(terms) term
                where collection_id = p_collection and from_rev <= p_rev and p_rev < to_rev
                group by term
                union all
                select split_part(word, '=', 1) as term, 0, count(*)
                from chunk_versions,
                     unnest((string_to_array(rtrim(title_words), ' '))[2:]) word
                where collection_id = p_collection and from_rev <= p_rev and p_rev < to_rev
                group by term
            ) counted group by term;
        return v_count;
    end $$;

-- Frozen term statistics of a collection at a revision, with the frequencies of these terms:
-- {"documents", "averageLength", "averageTitleLength", "terms": {term: [in text, in titles]}}.
create function statistics_at(p_collection uuid, p_rev integer, p_terms text[]) returns jsonb
    language sql stable set search_path = knowledge, pg_temp
    as $$
    select jsonb_build_object(
        'documents', s.documents, 'averageLength', s.average_length,
        'averageTitleLength', s.average_title_length,
        'terms', (
            select coalesce(jsonb_object_agg(f.term, jsonb_build_array(f.documents, f.title_documents)), '{}')
            from term_frequencies f
            where f.collection_id = s.collection_id and f.from_rev = s.from_rev and f.term = any(p_terms)))
    from term_statistics s
    where s.collection_id = p_collection and s.from_rev <= p_rev
    order by s.from_rev desc limit 1
    $$;

-- The version of every source that a revision holds: {source: version}.
create function source_versions_at(p_collection uuid, p_rev integer) returns jsonb
    language sql stable set search_path = knowledge, pg_temp
    as $$
    select coalesce(jsonb_object_agg(v.source_id, v.source_version), '{}') from (
        select distinct on (source_id) source_id, source_version from source_versions
        where collection_id = p_collection and revision <= p_rev
        order by source_id, revision desc
    ) v
    $$;

-- Grants, projects, groups, readable sources, served revisions, and what ranking and citing need
-- of them (term statistics, source versions), for one request: one round trip.
-- Null when the client is unknown or revoked in the current tenant. A collection is listed when it
-- belongs to the project or holds a source of it.
create function plan_request(p_client text, p_project text, p_collections text[], p_terms text[])
    returns jsonb
    language sql stable set search_path = knowledge, pg_temp
    as $$
    select jsonb_build_object(
        'projects', to_jsonb(c.projects),
        'groups', to_jsonb(c.groups),
        'scopes', to_jsonb(c.scopes),
        'collections', coalesce((
            select jsonb_agg(jsonb_build_object(
                'statistics', statistics_at(col.collection_id, words.revision, p_terms),
                'versions', source_versions_at(col.collection_id, words.revision),
                'collectionId', col.collection_id, 'slug', col.slug, 'headRev', col.head_rev,
                'profile', col.embedding_profile,
                'sources', (
                    select coalesce(jsonb_object_agg(s.source_id, s.trust_tier), '{}')
                    from sources s
                    where s.collection_id = col.collection_id and s.project_id = p_project
                      and s.deleted_at is null
                      and (s.acl is null or s.acl && (
                            array['user:' || c.client_id] || array(select 'group:' || g from unnest(c.groups) g)))),
                'served', (
                    select coalesce(jsonb_object_agg(r.kind, jsonb_build_object(
                        'indexRevisionId', r.index_revision_id, 'revision', r.revision, 'state', r.state,
                        'profile', g.embedding_profile, 'backend', g.backend,
                        'className', g.class_name, 'backendTenant', g.backend_tenant)), '{}')
                    from index_revisions r join generations g using (generation_id)
                    where r.collection_id = col.collection_id and r.state in ('Ready', 'Rebuilding', 'Degraded'))
                ) order by col.slug)
            from collections col
            left join index_revisions words on words.collection_id = col.collection_id
                 and words.kind = 'full_text' and words.state in ('Ready', 'Rebuilding', 'Degraded')
            where (p_collections is null or col.slug = any(p_collections) or col.collection_id::text = any(p_collections))
              and (col.project_id = p_project or exists (
                    select from sources s where s.collection_id = col.collection_id and s.project_id = p_project))
        ), '[]'))
    from clients c
    where c.client_id = p_client and c.revoked_at is null
    $$;

-- The one relay: gives committed events their place in the sequence that readers page by.
create function relay_outbox(p_limit integer) returns integer
    language plpgsql security definer set search_path = knowledge, pg_temp
    as $$
    declare v_count integer;
    begin
        if not pg_try_advisory_xact_lock(7211971) then
            return 0;
        end if;
        update outbox o set sequence = n.sequence
        from (
            select position,
                   coalesce((select max(sequence) from outbox), 0)
                   + row_number() over (order by position) as sequence
            from outbox where sequence is null order by position limit p_limit
        ) n
        where o.position = n.position;
        get diagnostics v_count = row_count;
        return v_count;
    end $$;

create function delete_expired_records(p_days integer) returns integer
    language plpgsql security definer set search_path = knowledge, pg_temp
    as $$
    declare v_count integer;
    begin
        delete from retrieval_queries where executed_at < now() - p_days * interval '1 day';
        get diagnostics v_count = row_count;
        delete from citations c where stored_at < now() - p_days * interval '1 day'
            and not exists (select from retrieval_queries q
                            where q.tenant_id = c.tenant_id and q.citations_ref = c.citations_ref);
        return v_count;
    end $$;

revoke execute on all functions in schema knowledge from public;
grant execute on all functions in schema knowledge to {app};
