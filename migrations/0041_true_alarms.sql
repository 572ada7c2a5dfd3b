-- That an alarm is over is sealed too, so that whoever writes the time of its end alone hides nothing. An alarm that has no seal itself, and one
-- that was open before this, needs none.
alter table alarms add column needs_closing boolean not null default false,
  add column closed_mac bytea check (octet_length(closed_mac) = 24);
create index alarms_unclosed on alarms (network, kind, subject) where resolved_at is not null and needs_closing and closed_mac is null;
create or replace function mark_closing() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  -- A restore inserts alarms that are over as they were. Taking the seal away from an open one undoes nothing.
  if new.resolved_at is not null then
    return new;
  end if;
  new.needs_closing := new.mac is not null;
  if tg_op = 'UPDATE' then
    new.needs_closing := new.needs_closing or old.needs_closing;
  end if;
  return new;
end $$;
create trigger alarms_need_closing before insert or update on alarms for each row execute function mark_closing();
drop trigger alarms_keep_what_they_are on alarms;
create trigger alarms_keep_what_they_are before update on alarms for each row
  execute function keep_columns('detail', 'seen_at', 'seen_count', 'resolved_at', 'mac', 'closed_mac');
-- One that ended for good is never changed. One that somebody ended goes on, and is seen again.
drop trigger alarms_stay_resolved on alarms;
create trigger alarms_stay_resolved before update on alarms for each row
  when (old.resolved_at is not null and not old.needs_closing) execute function keep_columns();
create trigger alarms_stay_ended before update on alarms for each row
  when (old.resolved_at is not null and old.needs_closing)
  execute function keep_columns('detail', 'seen_at', 'seen_count', 'mac', 'closed_mac');
-- Which master keys have sealed rows here: a row for each, sealed with it. A process whose keys none of them proves has another ledger's key, and
-- writes nothing.
create table ledger_proofs (
  key_id text primary key check (key_id ~ '^[0-9a-f]{16}$'),
  proven_at timestamptz not null default now(),
  mac bytea not null check (octet_length(mac) = 24)
);
create trigger ledger_proofs_are_kept before delete or truncate on ledger_proofs for each statement execute function keep_ledger_rows();
create trigger ledger_proofs_keep_what_they_are before update on ledger_proofs for each row execute function keep_columns('mac');
