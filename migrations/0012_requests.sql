-- What the API answered to shops, for 30 days. A row holds the requests with one key that came in one second and were written together:
-- with a row for each, they would cost a creation several times as much, and the disk eight times.
create table requests (
  -- The week since 1970, modulo 6. There are always the same partitions, for who runs the service may make none.
  slot smallint not null,
  -- The second in which they came.
  at timestamptz not null,
  -- The nil UUID: they came without a valid key. No references, for a log takes no lock of the ledger.
  project_id uuid not null,
  key_id uuid,
  -- The lowest and the highest of their ids, req_….
  first_id text collate "C" not null,
  last_id text collate "C" not null,
  count integer not null check (count between 1 and 1000),
  -- A JSON array of objects. Whoever reads it reads it as JSON; to examine it here would cost as much as all the rest.
  requests text not null,
  -- What is written twice is there once, for no other row has this id.
  primary key (at, first_id, slot),
  check (first_id ~ '^req_[0-9a-hjkmnp-tv-z]{26}$' and last_id >= first_id),
  check (slot = extract(epoch from at)::int8 / 604800 % 6)
) partition by list (slot);
create index requests_project on requests (project_id, at);

create table requests_0 partition of requests for values in (0);
create table requests_1 partition of requests for values in (1);
create table requests_2 partition of requests for values in (2);
create table requests_3 partition of requests for values in (3);
create table requests_4 partition of requests for values in (4);
create table requests_5 partition of requests for values in (5);

-- Empties the partitions that have nothing younger. Within 30 days there are six weeks, of which the last ended long before its slot is
-- written to again. A restore drops tables with all that hangs on them, which this does not.
create or replace function forget_old_requests(before timestamptz) returns void language plpgsql security definer as $$
declare
  part regclass;
  is_old boolean;
begin
  for part in select inhrelid from pg_inherits where inhparent = 'requests'::regclass order by 1 loop
    execute format('select max(at) < $1 from %s', part) into is_old using before;
    if is_old then
      execute format('lock table %s in access exclusive mode', part);
      -- Somebody may have written to it meanwhile.
      execute format('select max(at) < $1 from %s', part) into is_old using before;
      if is_old then
        execute format('truncate %s', part);
      end if;
    end if;
  end loop;
end $$;
revoke execute on function forget_old_requests from public;

-- Whoever may choose the search_path of a session must not choose the table that it empties.
do $$
begin
  execute format('alter function forget_old_requests(timestamptz) set search_path = pg_catalog, %I, pg_temp', current_schema());
end $$;
