-- A process may mark a ledger whose server was promoted without acknowledged invoices (database_oid = 0). The server's WAL shows the new
-- timeline at once. pg_control_checkpoint() shows it only after the server's next checkpoint, which can take minutes.
create or replace function keep_identity() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if new.database_oid = 0 and new.system_identifier is not distinct from old.system_identifier and new.timeline is not distinct from old.timeline then
    if old.timeline is null or not has_function_privilege('pg_walfile_name(pg_lsn)', 'execute') then
      return new;
    end if;
    if ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int > 1 then
      return new;
    end if;
  end if;
  if new.database_oid is distinct from (select oid::int8 from pg_database where datname = current_database())
    or has_function_privilege('pg_control_system()', 'execute') and has_function_privilege('pg_control_checkpoint()', 'execute')
    and (new.system_identifier is distinct from (select system_identifier::text from pg_control_system())
      or new.timeline is distinct from (select timeline_id from pg_control_checkpoint()))
  then
    raise exception 'the ledger cannot be marked as one of another database' using errcode = 'check_violation', constraint = tg_name;
  end if;
  return new;
end $$;
