-- Rebuilds, garbage collection, and counters that spare every publish a count of the collection.

-- A generation built beside the serving one, on request or because the profile changed.
create table rebuilds (
    rebuild_id        uuid primary key,
    tenant_id         text not null references tenants,
    collection_id     uuid not null references collections,
    reason            text not null check (reason in ('requested', 'profile', 'dead_rows')),
    embedding_profile text,  -- the one it builds with; null: no model
    state             text not null default 'requested'
                      check (state in ('requested', 'building', 'switched', 'failed', 'cancelled')),
    requested_by      text not null,
    requested_at      timestamptz not null default now(),
    started_at        timestamptz,
    finished_at       timestamptz,
    claims            integer not null default 0,  -- the builder's fencing token
    attempts          integer not null default 0,  -- those that failed, or whose process ended
    next_attempt_at   timestamptz not null default now(),
    items_written     bigint not null default 0,
    revision          integer,  -- the one that serves from it
    error             text
);
create unique index rebuilds_active on rebuilds (collection_id) where state in ('requested', 'building');
create index rebuilds_by_tenant on rebuilds (tenant_id, requested_at);
alter table rebuilds enable row level security;
create policy tenant_only on rebuilds using (tenant_id = current_tenant()) with check (tenant_id = current_tenant());
grant select, insert, update on rebuilds to {app};

alter table generations
    add column rebuild_id uuid references rebuilds,    -- null: built by a publish
    add column items      bigint not null default 0,   -- what it holds at applied_rev
    add column acl_rev    integer not null default 0;  -- ACL changes up to here reached a retired one
update generations g set acl_rev = applied_rev,
    items = (select count(*) from chunk_versions v where v.collection_id = g.collection_id
             and v.from_rev <= g.applied_rev and v.to_rev > g.created_rev);

alter table collections
    add column open_chunks   bigint not null default 0,   -- visible at the head
    add column collected_rev integer not null default 0;  -- what no revision from here on sees is gone
update collections c set open_chunks = (
    select count(*) from chunk_versions v
    where v.collection_id = c.collection_id and v.to_rev = 2147483647);

alter table snapshots add column open_chunks bigint not null default 0;  -- its chunks visible at the head
update snapshots s set open_chunks = (
    select count(*) from chunk_versions v
    where v.collection_id = s.collection_id and v.snapshot_id = s.snapshot_id and v.to_rev = 2147483647);
