-- Foundation: tenants, credentials, the clock of every collection, index revisions, inbox and outbox.
-- Run as the owner role with search_path = knowledge. {app} is the application role.

-- The tenant of the running transaction; null (so: nothing visible) when it is not set.
create function current_tenant() returns text
    language sql stable parallel safe
    as $$ select nullif(current_setting('knowledge.tenant', true), '') $$;

create table tenants (
    tenant_id  text primary key check (tenant_id ~ '^[a-z0-9][a-z0-9-]{0,61}$'),
    created_at timestamptz not null default now()
);

create table projects (
    tenant_id  text not null references tenants,
    project_id text not null check (project_id ~ '^[a-z0-9][a-z0-9-]{0,61}$'),
    created_at timestamptz not null default now(),
    primary key (tenant_id, project_id)
);

create table clients (
    client_id   text primary key,
    tenant_id   text not null references tenants,
    secret_hash bytea not null,
    projects    text[] not null,
    groups      text[] not null default '{}',
    scopes      text[] not null,
    created_at  timestamptz not null default now(),
    revoked_at  timestamptz
);
create index clients_by_tenant on clients (tenant_id);

create table collections (
    collection_id     uuid primary key,
    tenant_id         text not null references tenants,
    slug              text not null check (slug ~ '^[a-z0-9][a-z0-9-]{0,61}$'),
    project_id        text not null,
    kind              text not null default 'documents' check (kind in ('documents')),
    embedding_profile text,  -- name@version; null: no model
    allow_remote      boolean not null default false,
    head_rev          integer not null default 0,
    created_at        timestamptz not null default now(),
    unique (tenant_id, slug),
    foreign key (tenant_id, project_id) references projects
);

-- Persisted at first use and immutable: a changed definition needs a new version.
create table embedding_profiles (
    profile       text primary key,
    fingerprint   text not null,
    dimension     integer not null,
    definition    jsonb not null,
    first_used_at timestamptz not null default now()
);

create table sources (
    tenant_id     text not null,
    collection_id uuid not null references collections,
    source_id     text not null check (length(source_id) between 1 and 512),
    project_id    text not null,
    acl           text[],  -- null: everyone with the project; empty: nobody. Never versioned.
    trust_tier    text not null default 'SourceFact'
                  check (trust_tier in ('SourceFact', 'InferredFact', 'AgentObservation', 'UnverifiedMemory')),
    origin        text,    -- the folder or file it was last published from
    deleted_at    timestamptz,
    created_at    timestamptz not null default now(),
    primary key (collection_id, source_id),
    foreign key (tenant_id, project_id) references projects
);
create index sources_by_tenant on sources (tenant_id);

create table snapshots (
    snapshot_id     uuid primary key,
    tenant_id       text not null references tenants,
    collection_id   uuid not null references collections,
    manifest        text not null,
    manifest_sha256 bytea not null,
    mode            text not null check (mode in ('full', 'delta')),
    chunk_count     bigint not null,
    source_versions jsonb not null,
    created_at      timestamptz not null default now(),
    committed_rev   integer
);
create index snapshots_by_collection on snapshots (collection_id, created_at);

-- Which version of a source a revision holds: the entry with the greatest revision <= R.
create table source_versions (
    tenant_id      text not null,
    collection_id  uuid not null references collections,
    source_id      text not null,
    revision       integer not null,
    source_version text not null,
    snapshot_id    uuid not null,
    primary key (collection_id, source_id, revision)
);

-- What the publisher sent last, so that a delta can list only what differs.
create table published_paths (
    tenant_id     text not null,
    collection_id uuid not null references collections,
    source_id     text not null,
    path          text not null,
    digest        bytea not null,
    primary key (collection_id, source_id, path)
);

create table inbox (
    sequence        bigint generated always as identity primary key,
    tenant_id       text not null references tenants,
    collection_id   uuid not null references collections,
    event_source    text not null,
    event_id        text not null,
    event_type      text not null,
    payload         jsonb not null,
    state           text not null default 'pending' check (state in ('pending', 'committed', 'served', 'rejected')),
    attempts        integer not null default 0,
    next_attempt_at timestamptz not null default now(),
    error           text,
    revision        integer,
    received_at     timestamptz not null default now(),
    settled_at      timestamptz,
    unique (tenant_id, event_source, event_id)
);
create index inbox_unsettled on inbox (collection_id, sequence) where state in ('pending', 'committed');

create table outbox (
    position    bigint generated always as identity primary key,
    tenant_id   text not null,
    event_id    uuid not null unique,
    topic       text not null,
    event_type  text not null,
    subject     text not null,
    payload     jsonb not null,
    occurred_at timestamptz not null default now(),
    sequence    bigint unique  -- given by the one relay, after commit
);
create index outbox_unrelayed on outbox (position) where sequence is null;
create index outbox_by_tenant on outbox (tenant_id, sequence);

create table leases (
    collection_id uuid primary key references collections,
    tenant_id     text not null,
    owner         text not null,
    fencing_token bigint not null,
    expires_at    timestamptz not null
);

-- Chunk versions: the specification's IndexItems. Visible in R when from_rev <= R < to_rev.
create table chunk_versions (
    object_id      uuid primary key,
    tenant_id      text not null,
    collection_id  uuid not null references collections,
    chunk_id       uuid not null,
    from_rev       integer not null,
    to_rev         integer not null default 2147483647,
    acl_rev        integer not null,  -- the revision that last wrote the ACL
    snapshot_id    uuid not null,
    source_id      text not null,
    project_id     text not null,
    path           text not null,
    anchor         text not null,
    title          text not null,
    text           text not null,
    kind           text not null check (kind in ('document', 'code')),
    language       text,
    tags           text[] not null default '{}',
    metadata       jsonb not null default '{}',
    line_start     integer,
    line_end       integer,
    acl            text[],
    updated_at     timestamptz,
    content_hash   bytea not null,
    text_hash      bytea not null,
    words          text not null,  -- analysed title and text, counted: "3 lease=2 token=1 "
    title_words    text not null,
    terms          text[] collate "C" not null
);
create unique index chunk_versions_open on chunk_versions (collection_id, chunk_id) where to_rev = 2147483647;
create index chunk_versions_chunk on chunk_versions (collection_id, chunk_id);
create index chunk_versions_path on chunk_versions (collection_id, source_id, path) where to_rev = 2147483647;
create index chunk_versions_from on chunk_versions (collection_id, from_rev);
create index chunk_versions_to on chunk_versions (collection_id, to_rev) where to_rev < 2147483647;
create index chunk_versions_acl on chunk_versions (collection_id, acl_rev);
create index chunk_versions_terms on chunk_versions using gin (terms);

-- Term statistics, frozen: a query at R uses the entry with the greatest from_rev <= R.
create table term_statistics (
    tenant_id            text not null,
    collection_id        uuid not null references collections,
    from_rev             integer not null,
    documents            integer not null,
    average_length       double precision not null,
    average_title_length double precision not null,
    primary key (collection_id, from_rev)
);
create table term_frequencies (
    tenant_id       text not null,
    collection_id   uuid not null,
    from_rev        integer not null,
    term            text collate "C" not null,
    documents       integer not null,
    title_documents integer not null,
    primary key (collection_id, from_rev, term),
    foreign key (collection_id, from_rev) references term_statistics
);

create table generations (
    generation_id     uuid primary key,
    tenant_id         text not null,
    collection_id     uuid not null references collections,
    backend           text not null,
    class_name        text not null,
    backend_tenant    text not null,
    embedding_profile text,
    created_rev       integer not null,
    applied_rev       integer not null default 0,
    state             text not null default 'building' check (state in ('building', 'serving', 'retired', 'collected')),
    created_at        timestamptz not null default now()
);
create index generations_by_collection on generations (collection_id);

create table index_revisions (
    index_revision_id         uuid primary key,
    tenant_id                 text not null,
    collection_id             uuid not null references collections,
    kind                      text not null check (kind in ('vector', 'full_text', 'metadata')),
    revision                  integer not null,
    embedding_profile_version text,
    vector_profile            text,
    state                     text not null check (state in ('Building', 'Ready', 'Rebuilding', 'Degraded', 'Retired')),
    item_count                bigint not null default 0,
    built_from_snapshots      uuid[] not null default '{}',
    built_at                  timestamptz,
    generation_id             uuid not null references generations,
    error                     text,
    retired_at                timestamptz,
    collected_at              timestamptz,
    unique (collection_id, kind, revision)
);
create unique index index_revisions_serving on index_revisions (collection_id, kind)
    where state in ('Ready', 'Rebuilding', 'Degraded');

create table metadata_items (
    object_id     uuid primary key references chunk_versions,
    tenant_id     text not null,
    collection_id uuid not null,
    terms         text[] collate "C" not null
);
create index metadata_items_terms on metadata_items using gin (terms);
create index metadata_items_by_collection on metadata_items (collection_id);

-- Where the vector of an embedded text lies: one row a text, tenant and profile.
create table vectors (
    tenant_id text not null references tenants,
    profile   text not null,
    text_hash bytea not null,
    part      text not null,
    primary key (tenant_id, profile, text_hash)
);

create table retrieval_queries (
    query_id      uuid primary key,
    tenant_id     text not null,
    project_id    text not null,
    principal     text not null,
    groups        text[] not null,
    run_id        uuid,
    query_hash    bytea not null,
    filters       jsonb not null,
    indexes_used  uuid[] not null,
    legs          jsonb not null,
    result_count  integer not null,
    citations_ref text not null,
    latency_ms    integer not null,
    executed_at   timestamptz not null
);
create index retrieval_queries_by_age on retrieval_queries (executed_at);
create index retrieval_queries_by_tenant on retrieval_queries (tenant_id, executed_at);

-- Cited results by content hash; the principal is part of the content, so no two callers share one.
create table citations (
    tenant_id     text not null,
    citations_ref text not null,
    principal     text not null,
    project_id    text not null,
    citations     jsonb not null,
    stored_at     timestamptz not null default now(),
    primary key (tenant_id, citations_ref)
);

-- What a backend version proved about its filters, and when.
create table scope_contracts (
    backend     text not null,
    version     text not null,
    schema_hash text not null,
    proven_at   timestamptz not null default now(),
    primary key (backend, version, schema_hash)
);

-- Row-level security: the application role sees one tenant's rows, and none when no tenant is set.
do $$
declare name text;
begin
    for name in
        select c.relname from pg_class c
        join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id' and not a.attisdropped
        where c.relnamespace = 'knowledge'::regnamespace and c.relkind = 'r'
    loop
        execute format('alter table %I enable row level security', name);
        execute format(
            'create policy tenant_only on %I using (tenant_id = current_tenant()) with check (tenant_id = current_tenant())',
            name
        );
    end loop;
end $$;

grant usage on schema knowledge to {app};
grant select on all tables in schema knowledge to {app};
grant insert, update, delete on all tables in schema knowledge to {app};
revoke insert, update, delete on tenants, projects, clients, alembic_version from {app};
revoke update, delete on embedding_profiles from {app};
revoke select on clients from {app};
grant select (client_id, tenant_id, projects, groups, scopes, created_at, revoked_at) on clients to {app};
revoke delete on chunk_versions, index_revisions, generations, snapshots, source_versions, outbox from {app};
