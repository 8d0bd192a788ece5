-- The hybrid index in PostgreSQL: the items of all generations of the backend pgvector.

-- One item. The embedding has the dimension of its generation's profile, or is null; words holds
-- a term of the analysed text at the place of its hash, weighed as BM25 weighs its frequency.
create table hybrid_items (
    tenant_id  text not null,
    generation uuid not null,  -- generations.backend_tenant
    object_id  uuid not null,
    project_id text not null,
    source_id  text not null,
    acl        text[],  -- null: everyone with the project
    path       text not null,
    kind       text not null,
    language   text,
    tags       text[] not null,
    updated_at timestamptz,
    from_rev   integer not null,
    to_rev     integer not null,
    embedding  vector,
    words      sparsevec not null,
    primary key (generation, object_id)
);

-- A scan reads every embedding or every word: they stay in the row, uncompressed, up to a page.
alter table hybrid_items set (toast_tuple_target = 8160);
alter table hybrid_items alter column embedding set storage main;
alter table hybrid_items alter column words set storage main;

-- As everywhere, but asked once a query instead of once a row, which a scan would feel.
alter table hybrid_items enable row level security;
create policy tenant_only on hybrid_items
    using (tenant_id = (select current_tenant()))
    with check (tenant_id = (select current_tenant()));
grant select, insert, update, delete on hybrid_items to {app};
