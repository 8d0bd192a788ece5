-- The two legs that PostgreSQL answers, bounded in what they read.
--
-- Reading every chunk that holds any word of a question means reading most of a collection: a word
-- like "data" stands in half of it. A leg wants a few dozen hits, so it begins with the rarest
-- words and takes more common ones only as long as it lacks hits.

-- The words of a query with their frozen document frequencies, rarest first.
create function rarest_first(p_collection uuid, p_rev integer, p_terms text[], p_weights double precision[])
    returns table (place bigint, term text, weight double precision, documents double precision)
    language sql stable set search_path = knowledge, pg_temp
    as $$
        select row_number() over (order by coalesce(f.documents, 0), q.weight desc, q.term collate "C"),
               q.term, q.weight, coalesce(f.documents, 0)
        from unnest(p_terms, p_weights) as q(term, weight)
        left join term_frequencies f
             on f.tenant_id = current_tenant() and f.collection_id = p_collection and f.term = q.term
            and f.from_rev = (select max(s.from_rev) from term_statistics s
                              where s.collection_id = p_collection and s.from_rev <= p_rev)
    $$;

-- Chunks whose words meet p_terms, best first by the summed weight of the words found.
-- The caller rescores the few rows with the frozen statistics.
--
-- A round looks up each of the rarest words as long as they stand in v_read chunks together, and
-- conjunctions of the next ones that are expected in as many: of two, and of as many as it takes.
-- Too few hits: a wider round. Still too few, because the caller may read few chunks or the filters
-- admit few: whatever else holds a word, in id order. That looks at every chunk where few match, so
-- in a collection of more than v_swept only when there are no hits at all. The score counts all
-- words. A question whose words stand in at most v_read chunks is answered exactly, so every one is
-- in a small collection.
create or replace function search_full_text(
    p_collection uuid, p_rev integer, p_project text, p_sources text[], p_acl text[],
    p_terms text[], p_weights double precision[], p_limit integer,
    p_prefix text default null, p_kind text default null, p_language text default null,
    p_tags text[] default null, p_updated_after timestamptz default null)
    returns table (object_id uuid, score double precision)
    language plpgsql stable security definer set search_path = knowledge, pg_temp
    set plan_cache_mode = force_custom_plan set jit = off
    as $$
    #variable_conflict use_column
    declare
        v_total double precision := coalesce((
            select greatest(s.documents, 1) from term_statistics s
            where s.tenant_id = current_tenant() and s.collection_id = p_collection and s.from_rev <= p_rev
            order by s.from_rev desc limit 1), 1);
        v_read double precision;
        v_lookups text[];
        v_swept constant integer := 250000;  -- chunks that can all be looked at in 0.2 s
        v_is_whole boolean;  -- every word was looked up by itself
        v_found uuid[];
    begin
        foreach v_read in array array[2000, 12000] loop
            -- One lookup a line: words joined by a space, which no word holds.
            with words as (
                select w.*, sum(w.documents) over (order by w.place) > v_read as is_common
                from rarest_first(p_collection, p_rev, p_terms, p_weights) w
            ), common as (
                select c.place, c.term, c.documents, v_total * exp(
                    sum(ln(greatest(c.documents, 0.5) / v_total)) over (order by c.place)) as expected
                from words c where c.is_common
            ), pairs as (
                select p.lookup, p.place, sum(p.expected) over (order by p.expected, p.lookup) as upto
                from (select a.term || ' ' || b.term as lookup, a.documents * b.documents / v_total as expected,
                             row_number() over (order by a.documents * b.documents, a.term, b.term) as place
                      from common a join common b on a.place < b.place) p
            )
            select array_agg(l.lookup), not exists (select from common) into v_lookups, v_is_whole from (
                select w.term as lookup from words w where not w.is_common
                union all
                select p.lookup from pairs p where p.upto <= v_read and p.place <= 16
                union all
                select string_agg(c.term, ' ' order by c.place) from common c
                where c.place <= (select min(e.place) from common e where e.expected <= v_read)
            ) l where l.lookup is not null;

            select array_agg(found.object_id) into v_found from (
                select hit.object_id
                from unnest(v_lookups) as l(lookup)
                cross join lateral (
                    select sum(q.weight) as weight from unnest(p_terms, p_weights) as q(term, weight)
                    where q.term = any(string_to_array(l.lookup, ' '))
                ) worth
                cross join lateral (
                    select c.object_id from chunk_versions c
                    where c.tenant_id = current_tenant() and c.collection_id = p_collection
                      and c.terms @> string_to_array(l.lookup, ' ')
                      and c.from_rev <= p_rev and p_rev < c.to_rev
                      and c.project_id = p_project and c.source_id = any(p_sources)
                      and (c.acl is null or c.acl && p_acl)
                      and (p_prefix is null or starts_with(c.path, p_prefix))
                      and (p_kind is null or c.kind = p_kind)
                      and (p_language is null or c.language = p_language)
                      and (p_tags is null or c.tags @> p_tags)
                      and (p_updated_after is null or c.updated_at >= p_updated_after)
                    offset 0
                ) hit
                group by hit.object_id
                order by sum(worth.weight) desc, hit.object_id limit 8 * p_limit
            ) found;
            exit when v_is_whole or cardinality(v_found) >= p_limit;
        end loop;

        if not v_is_whole and (v_found is null
                               or cardinality(v_found) < p_limit and v_total <= v_swept) then
            v_found := v_found || array(
                select c.object_id from chunk_versions c
                where c.tenant_id = current_tenant() and c.collection_id = p_collection
                  and c.from_rev <= p_rev and p_rev < c.to_rev
                  and c.project_id = p_project and c.source_id = any(p_sources)
                  and (c.acl is null or c.acl && p_acl)
                  and (p_prefix is null or starts_with(c.path, p_prefix))
                  and (p_kind is null or c.kind = p_kind)
                  and (p_language is null or c.language = p_language)
                  and (p_tags is null or c.tags @> p_tags)
                  and (p_updated_after is null or c.updated_at >= p_updated_after)
                  and c.terms && p_terms and (v_found is null or c.object_id <> all(v_found))
                order by c.object_id limit p_limit);
        end if;

        return query
            select c.object_id,
                   (select sum(q.weight) from unnest(p_terms, p_weights) as q(term, weight)
                    where q.term = any(read.terms)) as score
            from chunk_versions c
            -- Fetched and decompressed once, not once a word.
            cross join lateral (select c.terms || '{}'::text[] as terms offset 0) read
            where c.object_id = any(v_found)
            order by score desc, c.object_id limit p_limit;
    end $$;

-- Chunks whose path, title and tags hold at least p_coverage of the summed weight of p_terms.
-- Looked up are only the words that every hit must hold (without one of them the others weigh too
-- little) and sets of words of which it must hold any (the others together weigh too little): the
-- heaviest, and two halves. Of a word that most paths hold the first v_read items in id order are
-- taken, all when those give too few hits.
create or replace function search_metadata(
    p_collection uuid, p_rev integer, p_project text, p_sources text[], p_acl text[],
    p_terms text[], p_weights double precision[], p_coverage double precision, p_limit integer,
    p_prefix text default null, p_kind text default null, p_language text default null,
    p_tags text[] default null, p_updated_after timestamptz default null)
    returns table (object_id uuid, score double precision)
    language plpgsql stable security definer set search_path = knowledge, pg_temp
    set plan_cache_mode = force_custom_plan set jit = off
    as $$
    #variable_conflict use_column
    declare
        v_total double precision := (select sum(w) from unnest(p_weights) w);
        -- What the words that every hit must hold leave to be held of the others.
        v_lacking double precision;
        v_must text[];
        v_any text[];
        v_odd text[];
        v_even text[];
        v_read integer;
        v_found uuid[];
        v_scores double precision[];
        v_items bigint;
    begin
        select array_agg(q.term), p_coverage * v_total - coalesce(sum(q.weight), 0) into v_must, v_lacking
        from unnest(p_terms, p_weights) as q(term, weight)
        where v_total - q.weight < p_coverage * v_total;

        if v_lacking > 0 then
            with others as (
                select q.term, q.weight, sum(q.weight) over () as together,
                       sum(q.weight) over (order by q.weight, q.term) as upto,
                       row_number() over (order by q.weight desc, q.term) % 4 in (0, 1) as is_odd
                from unnest(p_terms, p_weights) as q(term, weight)
                where v_must is null or q.term <> all(v_must)
            )
            select array_agg(o.term) filter (where o.upto >= v_lacking),
                   case when max(o.together) - sum(o.weight) filter (where o.is_odd) < v_lacking
                        then array_agg(o.term) filter (where o.is_odd) end,
                   case when max(o.together) - sum(o.weight) filter (where not o.is_odd) < v_lacking
                        then array_agg(o.term) filter (where not o.is_odd) end
            into v_any, v_odd, v_even from others o;
        end if;

        foreach v_read in array array[10000, 2147483647] loop
            with items as materialized (
                select m.object_id, m.terms from metadata_items m
                where m.tenant_id = current_tenant() and m.collection_id = p_collection
                  and (v_must is null or m.terms @> v_must)
                  and (v_any is null or m.terms && v_any)
                  and (v_odd is null or m.terms && v_odd)
                  and (v_even is null or m.terms && v_even)
                order by m.object_id limit v_read
            ), held as materialized (
                select i.object_id, cardinality(i.terms) as size, (
                    select sum(q.weight) from unnest(p_terms, p_weights) as q(term, weight)
                    where q.term = any(i.terms)) / v_total as score
                from items i
            ), admitted as (
                select hit.* from (
                    select h.* from held h where h.score >= p_coverage
                    order by h.score desc, h.size, h.object_id
                ) hit
                cross join lateral (
                    select from chunk_versions c
                    where c.object_id = hit.object_id
                      and c.from_rev <= p_rev and p_rev < c.to_rev
                      and c.project_id = p_project and c.source_id = any(p_sources)
                      and (c.acl is null or c.acl && p_acl)
                      and (p_prefix is null or starts_with(c.path, p_prefix))
                      and (p_kind is null or c.kind = p_kind)
                      and (p_language is null or c.language = p_language)
                      and (p_tags is null or c.tags @> p_tags)
                      and (p_updated_after is null or c.updated_at >= p_updated_after)
                    offset 0
                ) c
                order by hit.score desc, hit.size, hit.object_id limit p_limit
            )
            select array_agg(a.object_id order by a.score desc, a.size, a.object_id),
                   array_agg(a.score order by a.score desc, a.size, a.object_id),
                   (select count(*) from items)
            into v_found, v_scores, v_items from admitted a;
            exit when v_items < v_read or cardinality(v_found) >= p_limit;
        end loop;

        return query select f.object_id, f.score from unnest(v_found, v_scores) as f(object_id, score);
    end $$;

revoke execute on function rarest_first(uuid, integer, text[], double precision[]) from public;
