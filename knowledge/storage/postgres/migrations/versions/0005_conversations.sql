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
