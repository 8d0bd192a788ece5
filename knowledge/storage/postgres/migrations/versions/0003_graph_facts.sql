-- Temporal graph facts. What is said is never rewritten: a belief is closed, and another opens.

-- The sources of facts, and who may read them. A source that also published documents must be
-- readable there too. Permissions are always today's.
create table graph_sources (
    tenant_id  text not null,
    project_id text not null,
    source_id  text not null check (length(source_id) between 1 and 512),
    acl        text[],  -- null: everyone with the project; empty: nobody
    deleted_at timestamptz,
    created_at timestamptz not null default now(),
    primary key (tenant_id, project_id, source_id),
    foreign key (tenant_id, project_id) references projects
);

-- When facts of a project were last written: the row is locked by the one writer, and what a reader
-- finds in it is the time up to which everything that was recorded is there.
create table graph_heads (
    tenant_id  text not null,
    project_id text not null,
    written_at timestamptz not null,
    primary key (tenant_id, project_id),
    foreign key (tenant_id, project_id) references projects
);

-- One row a telling of a fact; at most one telling of a fact is believed at a time.
create table graph_facts (
    telling_id           uuid primary key,
    fact_id              uuid not null,
    tenant_id            text not null,
    project_id           text not null,
    scope_key            text not null,  -- tenant/project, for indexes that look names up
    listing_key          text not null,  -- the same, for indexes that list a project
    namespace            text not null,
    domain               text not null check (domain in ('code', 'architecture', 'infrastructure',
                         'organization', 'customer', 'business', 'agentExperience')),
    subject              text not null,
    subject_key          text collate "C" not null,  -- as it is looked up
    subject_type         text,
    predicate            text collate "C" not null,
    object               text not null,
    object_key           text collate "C" not null,
    object_type          text,
    valid_from           timestamptz,  -- the half-open window as it was stated; null: unbounded
    valid_from_precision text,
    valid_to             timestamptz,
    valid_to_precision   text,
    begins               timestamptz not null,  -- valid_from, or -infinity
    starts               timestamptz not null,  -- its place on the timeline: valid_from, or observed_at
    timeline             uuid,  -- of a functional predicate: the line on which facts follow one another
    observed_at          timestamptz not null,
    confidence           double precision not null check (confidence between 0 and 1),
    trust_tier           text not null,
    trust                smallint not null check (trust between 0 and 3),  -- 3: SourceFact
    verified             boolean not null,
    principal            text not null,
    source_id            text,
    source_version       text,
    client               text,
    model                text,
    session_id           text,
    acl                  text[],
    collection_id        uuid,  -- the chunk that says it: the fact is seen by who sees the chunk
    chunk_id             uuid,
    rule                 text,    -- of an inferred fact
    lineage              uuid[],  -- the facts it rests on
    lineage_sources      text[],  -- their sources: who may not read one does not see it
    suggestion           text check (suggestion in ('suggested', 'confirmed')),
    confirmed_by         text,
    recorded_at          timestamptz not null,
    closed_at            timestamptz,
    closing              text check (closing in ('restated', 'corrected', 'retracted', 'premise', 'rejected')),
    closed_by            text,  -- the fact or principal that closed it
    check (scope_key = tenant_id || '/' || project_id and listing_key = scope_key),
    check (valid_to >= valid_from),
    check ((closed_at is null) = (closing is null)),
    check (source_id is not null or principal <> ''),
    check ((rule is null) = (lineage is null)),
    foreign key (tenant_id, project_id, source_id) references graph_sources
);
create unique index graph_facts_believed on graph_facts (fact_id) where closed_at is null;
create index graph_facts_fact on graph_facts (fact_id);
-- No index holds the tenant, which every query names: while a new tenant's facts pour in, the planner
-- takes it for one without any, and would read them all wherever one was asked for. For the same
-- reason lists are read by a column of their own, which a lookup does not name.
create index graph_facts_subject on graph_facts (subject_key, scope_key, begins desc, fact_id);
create index graph_facts_object on graph_facts (object_key, scope_key, begins desc, fact_id);
create index graph_facts_predicate on graph_facts (predicate, scope_key, begins desc, fact_id);
create index graph_facts_listing on graph_facts (listing_key, begins desc, fact_id);
create index graph_facts_timeline on graph_facts
    (timeline, trust, starts, confidence, observed_at, fact_id) where timeline is not null;
create index graph_facts_undated on graph_facts (timeline, trust, starts)
    where timeline is not null and valid_from is null;
create index graph_facts_suggested_line on graph_facts (timeline, trust, starts)
    where timeline is not null and suggestion = 'suggested';
create index graph_facts_domain on graph_facts (listing_key, domain, begins desc, fact_id);
create index graph_facts_source on graph_facts (source_id, scope_key, begins desc, fact_id)
    where source_id is not null;
create index graph_facts_suggested on graph_facts (listing_key, begins desc, fact_id) where suggestion = 'suggested';
create index graph_facts_chunk on graph_facts (collection_id, chunk_id) where chunk_id is not null;

-- What an inferred fact rests on, to be found from the premise.
create table graph_premises (
    tenant_id  text not null,
    premise_id uuid not null,
    fact_id    uuid not null,
    primary key (premise_id, fact_id)
);

-- Believed facts by project, domain and tier: kept by every write.
create table graph_fact_counts (
    tenant_id  text not null,
    project_id text not null,
    domain     text not null,
    trust_tier text not null,
    facts      bigint not null,
    primary key (tenant_id, project_id, domain, trust_tier)
);

-- Two names of one entity. Undone merges stay.
create table graph_merges (
    merge_id   uuid primary key,
    tenant_id  text not null references tenants,
    namespace  text not null,
    name       text not null,
    name_key   text collate "C" not null,
    type       text,  -- null: whatever the type
    into_name  text not null,
    into_key   text collate "C" not null,
    into_type  text,
    reason     text not null,
    merged_by  text not null,
    merged_at  timestamptz not null default now(),
    undone_by  text,
    undone_at  timestamptz,
    check (name_key <> into_key or type is distinct from into_type)
);
create unique index graph_merges_name on graph_merges (tenant_id, namespace, name_key, coalesce(type, ''))
    where undone_at is null;
create index graph_merges_into on graph_merges (tenant_id, namespace, into_key) where undone_at is null;

-- A tenant's own ontologies, oldest first; the newest is in force.
create table graph_ontologies (
    tenant_id  text not null references tenants,
    version    integer not null check (version > 0),
    document   text not null,
    applied_by text not null,
    applied_at timestamptz not null default now(),
    primary key (tenant_id, version)
);

-- Answers of requests that carried an Idempotency-Key.
create table idempotency_keys (
    tenant_id    text not null references tenants,
    principal    text not null,
    operation    text not null,
    key          text not null,
    request_hash bytea not null,
    answer       jsonb not null,
    stored_at    timestamptz not null default now(),
    primary key (tenant_id, principal, operation, key)
);
create index idempotency_keys_by_age on idempotency_keys (stored_at);

do $$
declare name text;
begin
    foreach name in array array['graph_sources', 'graph_heads', 'graph_facts', 'graph_premises', 'graph_fact_counts',
                                'graph_merges', 'graph_ontologies', 'idempotency_keys']
    loop
        execute format('alter table %I enable row level security', name);
        execute format(
            'create policy tenant_only on %I using (tenant_id = current_tenant()) with check (tenant_id = current_tenant())',
            name
        );
    end loop;
end $$;
grant select, insert, update on graph_sources, graph_heads, graph_facts, graph_fact_counts, graph_merges to {app};
grant select, insert on graph_premises, graph_ontologies, idempotency_keys to {app};

-- Sources in whose name a caller with these ACL entries may neither read facts nor tell them: of
-- facts, and of documents. Every fact's source has a row in graph_sources, so what is not listed
-- here is readable.
create function denied_sources(p_project text, p_acl text[]) returns text[]
    language sql stable set search_path = knowledge, pg_temp
    as $$
        select coalesce(array_agg(distinct s.source_id), '{}') from (
            select g.source_id, g.deleted_at, g.acl from graph_sources g where g.project_id = p_project
            union all
            select c.source_id, c.deleted_at, c.acl from sources c where c.project_id = p_project
        ) s
        where s.deleted_at is not null or not (s.acl is null or s.acl && p_acl)
    $$;

-- Who may read the sources that not everyone may read: {source: readers}, the same text for two
-- sources with the same readers. A deleted source is like no other.
create function restricted_sources(p_project text) returns jsonb
    language sql stable set search_path = knowledge, pg_temp
    as $$
        select coalesce(jsonb_object_agg(r.source_id, r.readers), '{}') from (
            select s.source_id,
                   case when bool_or(s.deleted_at is not null) then 'deleted ' || s.source_id
                        else string_agg(distinct s.acl::text, ';' order by s.acl::text) end as readers
            from (
                select source_id, acl, deleted_at from graph_sources where project_id = p_project
                union all
                select source_id, acl, deleted_at from sources where project_id = p_project
            ) s
            where s.acl is not null or s.deleted_at is not null
            group by s.source_id
        ) r
    $$;

-- Whether the chunk that says a fact is there, and may be read by a caller with these ACL entries.
create function chunk_is_readable(p_project text, p_acl text[], p_collection uuid, p_chunk uuid) returns boolean
    language sql stable set search_path = knowledge, pg_temp
    as $$
        select exists (
            select from chunk_versions c join sources s using (collection_id, source_id)
            where c.collection_id = p_collection and c.chunk_id = p_chunk and c.to_rev = 2147483647
              and c.project_id = p_project and (c.acl is null or c.acl && p_acl)
              and s.deleted_at is null and (s.acl is null or s.acl && p_acl))
    $$;

-- What a question about facts needs to know of its caller: one round trip. Null when the client
-- is unknown or revoked in the current tenant.
create function plan_graph(p_client text, p_project text) returns jsonb
    language sql stable set search_path = knowledge, pg_temp
    as $$
    select jsonb_build_object(
        'projects', to_jsonb(c.projects), 'groups', to_jsonb(c.groups), 'scopes', to_jsonb(c.scopes),
        'now', clock_timestamp(),
        'knownAt', (select written_at from graph_heads where project_id = p_project),
        'denied', to_jsonb(denied_sources(
            p_project, array['user:' || c.client_id] || array(select 'group:' || g from unnest(c.groups) g))),
        'readers', restricted_sources(p_project),
        'ontology', (select max(version) from graph_ontologies),
        'hasMerges', exists (select from graph_merges where undone_at is null))
    from clients c
    where c.client_id = p_client and c.revoked_at is null
    $$;

-- Grants, projects, groups, readable sources, served revisions, and what ranking and citing need
-- of them (term statistics, source versions), for one request: one round trip.
-- Null when the client is unknown or revoked in the current tenant. A collection is listed when it
-- belongs to the project or holds a source of it. 'facts' is null for a project without any.
create or replace function plan_request(p_client text, p_project text, p_collections text[], p_terms text[])
    returns jsonb
    language sql stable set search_path = knowledge, pg_temp
    as $$
    select jsonb_build_object(
        'projects', to_jsonb(c.projects),
        'groups', to_jsonb(c.groups),
        'scopes', to_jsonb(c.scopes),
        'facts', case when exists (
                select from graph_heads h where h.project_id = p_project)
            then jsonb_build_object(
                'knownAt', (select written_at from graph_heads where project_id = p_project),
                'hasMerges', exists (select from graph_merges where undone_at is null),
                'readers', restricted_sources(p_project),
                'denied', to_jsonb(denied_sources(
                    p_project,
                    array['user:' || c.client_id] || array(select 'group:' || g from unnest(c.groups) g))))
            end,
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

-- Believed facts of every tenant by domain and tier, for the metrics.
create function count_graph_facts() returns table (tenant_id text, domain text, trust_tier text, facts bigint)
    language sql stable security definer set search_path = knowledge, pg_temp
    as $$
        select c.tenant_id, c.domain, c.trust_tier, sum(c.facts)::bigint from graph_fact_counts c
        group by c.tenant_id, c.domain, c.trust_tier
    $$;

-- Take the planner's statistics anew when the facts have doubled: autovacuum would do it too, a
-- minute later, and until then a bulk load is planned by the statistics of an empty table.
create function analyse_grown_facts() returns boolean
    language plpgsql security definer set search_path = knowledge, pg_temp
    as $$
    begin
        if (select coalesce(sum(facts), 0) from graph_fact_counts)
           < 2 * (select greatest(reltuples, 500) from pg_class where oid = 'graph_facts'::regclass) then
            return false;
        end if;
        analyze (skip_locked) graph_facts;
        return true;
    end $$;

create function delete_expired_keys(p_hours integer) returns integer
    language plpgsql security definer set search_path = knowledge, pg_temp
    as $$
    declare v_count integer;
    begin
        delete from idempotency_keys where stored_at < now() - p_hours * interval '1 hour';
        get diagnostics v_count = row_count;
        return v_count;
    end $$;

revoke execute on function denied_sources(text, text[]), restricted_sources(text),
    chunk_is_readable(text, text[], uuid, uuid), plan_graph(text, text), count_graph_facts(),
    analyse_grown_facts(), delete_expired_keys(integer) from public;
grant execute on function denied_sources(text, text[]), restricted_sources(text),
    chunk_is_readable(text, text[], uuid, uuid), plan_graph(text, text), count_graph_facts(),
    analyse_grown_facts(), delete_expired_keys(integer) to {app};
