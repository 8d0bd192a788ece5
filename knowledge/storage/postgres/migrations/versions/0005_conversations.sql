-- Collections of conversations: a turn knows its session and its place there.

alter table collections drop constraint collections_kind_check;
alter table collections add constraint collections_kind_check check (kind in ('documents', 'conversation'));

-- Of a turn only. Places order the turns of a session of a source and say nothing else: a turn
-- that comes between two others gets a place between theirs, and theirs stay.
alter table chunk_versions add column session text;
alter table chunk_versions add column place double precision;
alter table chunk_versions add constraint chunk_versions_turn_check check ((session is null) = (place is null));
create index chunk_versions_turns on chunk_versions (collection_id, source_id, session, place)
    where session is not null;

-- The turns at these places (source, session, place) and up to p_reach on each side, each once and in
-- their order, of those in scope: one that is not in scope is as if it did not exist. The request's own
-- filters leave none out, `meets` tells. Without sorts a side is read from the index that has its order,
-- whatever the statistics of a table filled a moment ago.
create function turns_around(
    p_collection uuid, p_rev integer, p_project text, p_sources text[], p_acl text[],
    p_of text[], p_sessions text[], p_places double precision[], p_reach integer,
    p_prefix text default null, p_kind text default null, p_language text default null,
    p_tags text[] default null, p_updated_after timestamptz default null)
    returns table (object_id uuid, source_id text, session text, place double precision, meets boolean)
    language plpgsql stable security definer set search_path = knowledge, pg_temp
    set plan_cache_mode = force_custom_plan set jit = off set enable_sort = off
    as $$
    #variable_conflict use_column
    begin
        return query
        select distinct n.object_id, n.source_id, n.session, n.place, n.meets
        from unnest(p_of, p_sessions, p_places) as t(source_id, session, place)
        cross join lateral (
            (select c.object_id, c.source_id, c.session, c.place,
                    (p_prefix is null or starts_with(c.path, p_prefix))
                    and (p_kind is null or c.kind = p_kind)
                    and (p_language is null or c.language = p_language)
                    and (p_tags is null or c.tags @> p_tags)
                    and (p_updated_after is null or coalesce(c.updated_at >= p_updated_after, false)) as meets
             from chunk_versions c
             where c.tenant_id = current_tenant() and c.collection_id = p_collection
               and c.source_id = t.source_id and c.session = t.session and c.place <= t.place
               and c.from_rev <= p_rev and p_rev < c.to_rev
               and c.project_id = p_project and c.source_id = any(p_sources)
               and (c.acl is null or c.acl && p_acl)
             order by c.place desc limit p_reach + 1)
            union all
            (select c.object_id, c.source_id, c.session, c.place,
                    (p_prefix is null or starts_with(c.path, p_prefix))
                    and (p_kind is null or c.kind = p_kind)
                    and (p_language is null or c.language = p_language)
                    and (p_tags is null or c.tags @> p_tags)
                    and (p_updated_after is null or coalesce(c.updated_at >= p_updated_after, false)) as meets
             from chunk_versions c
             where c.tenant_id = current_tenant() and c.collection_id = p_collection
               and c.source_id = t.source_id and c.session = t.session and c.place > t.place
               and c.from_rev <= p_rev and p_rev < c.to_rev
               and c.project_id = p_project and c.source_id = any(p_sources)
               and (c.acl is null or c.acl && p_acl)
             order by c.place limit p_reach)
        ) n
        order by n.source_id, n.session, n.place, n.object_id;
    end $$;

revoke execute on function turns_around(
    uuid, integer, text, text[], text[], text[], text[], double precision[], integer,
    text, text, text, text[], timestamptz) from public;
grant execute on function turns_around(
    uuid, integer, text, text[], text[], text[], text[], double precision[], integer,
    text, text, text, text[], timestamptz) to {app};
