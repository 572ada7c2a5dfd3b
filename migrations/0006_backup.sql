-- Which database a ledger is in, what a restored one must never hand out again, and the end of one that has moved.

-- The marks tell a copy that was made around our commands from the original. They are taken at the first start of a service, not
-- here, so that a migrated database may serve as a template. id stays with the ledger wherever it moves.
create table ledger_identity (
  is_only boolean primary key default true check (is_only),
  id uuid not null,
  system_identifier text,
  database_oid bigint not null,
  timeline integer,
  taken_at timestamptz not null default now(),
  closed_at timestamptz,
  -- Account keys that are added later begin here: what was derived from them after a backup that was restored is not known.
  first_index integer not null default 0 check (first_index >= 0)
);

-- After a restore nobody knows which amounts of an address were handed out since the backup. So it never gets a new invoice.
alter table addresses
  add column barred_at timestamptz,
  add constraint addresses_barred check (barred_at is null or retired_at is not null);
create function keep_addresses_barred() returns trigger language plpgsql as $$
begin
  raise exception 'address % is barred for ever: amounts of it may be known to payers and not to this database', old.address
    using errcode = 'check_violation';
end $$;
create trigger addresses_stay_barred before update on addresses for each row
  when (old.barred_at is not null and new.barred_at is distinct from old.barred_at)
  execute function keep_addresses_barred();

alter table account_keys add column first_index integer not null default 0 check (first_index >= 0);

-- Enabled when the ledger moves for good. The state is that of a standby, which every release answers with 503.
create function refuse_new_invoices() returns trigger language plpgsql as $$
begin
  raise exception 'this ledger was closed by its final backup: new invoices are made where that was restored'
    using errcode = 'read_only_sql_transaction';
end $$;
create trigger invoices_of_a_closed_ledger before insert on invoices for each statement execute function refuse_new_invoices();
alter table invoices disable trigger invoices_of_a_closed_ledger;
