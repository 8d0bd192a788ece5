-- Agent memory: facts in namespaces of the form tenant|graph.

-- A fact of one session only; null: shared.
alter table graph_facts add column session_scope text
    check (session_scope is null or (length(session_scope) between 1 and 512 and namespace like '%|%'));
alter table graph_facts add column verified_by text;  -- of a telling that a person verified
alter table graph_facts drop constraint graph_facts_closing_check;
alter table graph_facts add constraint graph_facts_closing_check
    check (closing in ('restated', 'corrected', 'retracted', 'premise', 'rejected', 'promoted'));

-- What was written to a memory since, and what it holds. Only queries that name memories
-- (namespace like '%|%') can use these, so no other is planned by them.
create index graph_facts_memory_recorded on graph_facts (scope_key, namespace, recorded_at)
    where namespace like '%|%';
create index graph_facts_memory_closed on graph_facts (scope_key, namespace, closed_at)
    where namespace like '%|%' and closed_at is not null;
create index graph_facts_memory_open on graph_facts (scope_key, namespace)
    where namespace like '%|%' and closed_at is null;

-- Memories that were written to, and up to when their names have vectors of which model.
create table memory_namespaces (
    tenant_id     text not null,
    project_id    text not null,
    namespace     text not null check (namespace like '%|%'),
    written_at    timestamptz not null,
    embedded_at   timestamptz,
    embedded_with text,  -- fingerprint of the profile
    erased_at     timestamptz,  -- when facts were taken out of it last
    primary key (tenant_id, project_id, namespace),
    foreign key (tenant_id, project_id) references projects
);

insert into memory_namespaces (tenant_id, project_id, namespace, written_at)
    select tenant_id, project_id, namespace, max(recorded_at) from graph_facts
    where namespace like '%|%' group by tenant_id, project_id, namespace;

-- Vectors of entity names, and of nothing else: float32, little-endian, of length 1.
create table memory_vectors (
    tenant_id   text not null,
    project_id  text not null,
    namespace   text not null,
    name_key    text collate "C" not null,
    fingerprint text not null,  -- of the profile: vectors of two models never mix
    dimension   integer not null check (dimension between 1 and 4096),
    vector      bytea not null check (octet_length(vector) = 4 * dimension),
    embedded_at timestamptz not null default clock_timestamp(),
    primary key (tenant_id, project_id, namespace, fingerprint, name_key),
    foreign key (tenant_id, project_id, namespace) references memory_namespaces
);

-- What was forgotten: how much of it in which store, never what it said.
create table memory_receipts (
    receipt_id   uuid primary key,
    tenant_id    text not null references tenants,
    project_id   text not null,
    namespace    text not null,
    asked        text not null check (asked in ('facts', 'entity', 'session', 'everything')),
    counts       jsonb not null,
    forgotten_by text not null,
    forgotten_at timestamptz not null default clock_timestamp()
);
create index memory_receipts_by_tenant on memory_receipts (tenant_id, forgotten_at);

do $$
declare name text;
begin
    foreach name in array array['memory_namespaces', 'memory_vectors', 'memory_receipts']
    loop
        execute format('alter table %I enable row level security', name);
        execute format(
            'create policy tenant_only on %I using (tenant_id = current_tenant()) with check (tenant_id = current_tenant())',
            name
        );
    end loop;
end $$;
grant select, insert, update on memory_namespaces to {app};
grant select, insert, update, delete on memory_vectors to {app};
grant select, insert on memory_receipts to {app};

-- Of every tenant: memories with names that may have no vector of this model.
create function memories_to_embed(p_fingerprint text)
    returns table (tenant_id text, project_id text, namespace text, written_at timestamptz)
    language sql stable security definer set search_path = knowledge, pg_temp
    as $$
        select m.tenant_id, m.project_id, m.namespace, m.written_at from memory_namespaces m
        where m.embedded_at is null or m.embedded_at < m.written_at or m.embedded_with <> p_fingerprint
        order by m.written_at
    $$;

-- What a question to a memory needs to know: plan_graph, and what changes when the memory's names
-- changed other than by facts. Without p_project the only project of the client. Null as plan_graph.
create function plan_memory(p_client text, p_project text, p_namespace text) returns jsonb
    language plpgsql stable set search_path = knowledge, pg_temp
    as $$
    declare v_project text := coalesce(p_project, (
        select c.projects[1] from clients c
        where c.client_id = p_client and cardinality(c.projects) = 1));
    begin
        return (select plan_graph(p_client, v_project) || jsonb_build_object(
            'project', v_project,
            'erasedAt', m.erased_at, 'embeddedAt', m.embedded_at,
            'merges', (select concat_ws('/', count(*), count(undone_at)) from graph_merges
                       where namespace = p_namespace))
            from (select 1) as always
            left join memory_namespaces m on m.project_id = v_project and m.namespace = p_namespace);
    end $$;

-- A personal API key is a client of one project that is used as it is.
alter table clients add column kind text not null default 'client' check (kind in ('client', 'key'));
alter table clients add column name text check (length(name) between 1 and 120);
alter table clients add column expires_at timestamptz;
-- One that has expired does not exist for the application, whatever it asks.
create policy unexpired on clients as restrictive using (expires_at is null or expires_at > now());

create or replace function client_for_token(p_client text)
    returns table (client_id text, tenant_id text, secret_hash bytea, scopes text[])
    language sql stable security definer set search_path = knowledge, pg_temp
    as $$
        select c.client_id, c.tenant_id, c.secret_hash, c.scopes
        from clients c where c.client_id = p_client and c.kind = 'client' and c.revoked_at is null
    $$;

create function key_for_request(p_client text)
    returns table (client_id text, tenant_id text, secret_hash bytea, scopes text[], expires_at timestamptz)
    language sql stable security definer set search_path = knowledge, pg_temp
    as $$
        select c.client_id, c.tenant_id, c.secret_hash, c.scopes, c.expires_at
        from clients c where c.client_id = p_client and c.kind = 'key' and c.revoked_at is null
    $$;

-- Take facts of a memory of the current tenant out of the store, with every telling of them, what
-- was inferred from them, and what cites them. The one exception to "nothing is deleted".
create function erase_memory(p_project text, p_namespace text, p_facts uuid[]) returns jsonb
    language plpgsql security definer set search_path = knowledge, pg_temp
    as $$
    declare
        v_tenant text := current_tenant();
        v_facts uuid[];
        v_tellings integer; v_premises integer; v_vectors integer; v_merges integer; v_citations integer;
    begin
        if coalesce(v_tenant, '') = '' or p_namespace not like '%|%' then
            raise exception 'memories of a tenant only';
        end if;
        with recursive erased(fact_id) as (
            select distinct f.fact_id from unnest(p_facts) as k(id)
            cross join lateral (select * from graph_facts where fact_id = k.id offset 0) f
            where f.tenant_id = v_tenant and f.project_id = p_project and f.namespace = p_namespace
            union
            select p.fact_id from erased e join graph_premises p on p.premise_id = e.fact_id
            where p.tenant_id = v_tenant
        )
        select coalesce(array_agg(fact_id), '{}') into v_facts from erased;
        delete from graph_premises
            where tenant_id = v_tenant and (premise_id = any(v_facts) or fact_id = any(v_facts));
        get diagnostics v_premises = row_count;
        create temp table erased_names on commit drop as
            select distinct n.key from graph_facts f, lateral (values (f.subject_key), (f.object_key)) as n(key)
            where f.fact_id = any(v_facts) and f.tenant_id = v_tenant;
        delete from graph_facts where fact_id = any(v_facts) and tenant_id = v_tenant;
        get diagnostics v_tellings = row_count;
        delete from erased_names e where exists (
            select from graph_facts f
            where f.scope_key = v_tenant || '/' || p_project and f.namespace = p_namespace
              and f.namespace like '%|%' and (f.subject_key = e.key or f.object_key = e.key));
        delete from memory_vectors v using erased_names e
            where v.tenant_id = v_tenant and v.project_id = p_project and v.namespace = p_namespace
              and v.name_key = e.key;
        get diagnostics v_vectors = row_count;
        -- Merges are the tenant's: those that facts of another project are found by stay.
        delete from graph_merges m using erased_names e
            where m.tenant_id = v_tenant and m.namespace = p_namespace
              and (m.name_key = e.key or m.into_key = e.key)
              and not exists (
                select from graph_facts f
                where f.tenant_id = v_tenant and f.project_id <> p_project and f.namespace = p_namespace
                  and f.namespace like '%|%' and (f.subject_key in (m.name_key, m.into_key)
                                               or f.object_key in (m.name_key, m.into_key)));
        get diagnostics v_merges = row_count;
        drop table erased_names;
        delete from citations c
            where c.tenant_id = v_tenant and c.project_id = p_project
              and exists (select from jsonb_array_elements(c.citations) as one
                          where (one ->> 'factId') = any(v_facts::text[]));
        get diagnostics v_citations = row_count;
        return jsonb_build_object('facts', cardinality(v_facts), 'tellings', v_tellings,
            'premises', v_premises, 'vectors', v_vectors, 'merges', v_merges, 'citations', v_citations);
    end $$;

revoke execute on function memories_to_embed(text), key_for_request(text), plan_memory(text, text, text),
    erase_memory(text, text, uuid[]) from public;
grant execute on function memories_to_embed(text), key_for_request(text), plan_memory(text, text, text),
    erase_memory(text, text, uuid[]) to {app};
