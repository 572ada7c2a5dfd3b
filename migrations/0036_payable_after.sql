-- Nothing that was on the chain before an order existed pays it. Null: an invoice of an earlier release. So every row satisfies the check
-- already, and reading the table to validate it would only hold up creation.
alter table invoices add column payable_after timestamptz;
alter table invoices add constraint invoices_payable_after check (isfinite(payable_after)) not valid;

-- A guard must name every column that stays, so it is made anew when a table gets one. The condition spares a call where nothing else changes.
create or replace function guard_columns(of_table regclass, changing text[]) returns void language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  guard text := (select relname || '_keep_what_they_are' from pg_class where oid = of_table);
begin
  execute format('drop trigger if exists %I on %s', guard, of_table);
  execute format('create trigger %I before update on %s for each row when (%s) execute function %s.keep_columns(%s)', guard, of_table,
    (select string_agg(format('old.%1$I is distinct from new.%1$I', attname), ' or ' order by attnum) from pg_attribute
      where attrelid = of_table and attnum > 0 and not attisdropped and attname <> all(changing)),
    (select relnamespace::regnamespace from pg_class where oid = of_table),
    (select string_agg(quote_literal(a), ', ') from unnest(changing) a));
end $$;
revoke execute on function guard_columns from public;
select guard_columns('invoices',
  array['status', 'event_count', 'paid_transfer_id', 'expires_at', 'mac', 'paid_mac', 'withdrawn_at', 'withdrawn_mac']);

-- Where the chain stood when a watcher last saw that it has no later block, and the database's clock then. Both are null where that clock was
-- seen to be wrong.
alter table chain_cursors
  add column live_time timestamptz check (isfinite(live_time)),
  add column live_at timestamptz check (isfinite(live_at)),
  add constraint chain_cursors_live check ((live_time is null) = (live_at is null));
select guard_columns('chain_cursors',
  array['solid_number', 'solid_id', 'solid_time', 'updated_at', 'live_time', 'live_at', 'halted_at', 'halt_reason', 'mac']);

-- Transfers to our addresses in any block that was examined, also in one that was orphaned since, for as long as a transaction can come back
-- in another block. first_time: of the first of those blocks.
create table arrivals (
  network text not null,
  tx_id bytea not null check (octet_length(tx_id) = 32),
  log_index integer not null check (log_index >= 0),
  address_id uuid not null,
  amount_micro bigint not null check (amount_micro > 0),
  first_time timestamptz not null check (isfinite(first_time)),
  primary key (network, tx_id, log_index)
);
create index arrivals_amount on arrivals (address_id, amount_micro);
create index arrivals_age on arrivals (network, first_time);
insert into arrivals (network, tx_id, log_index, address_id, amount_micro, first_time)
  select t.network, t.tx_id, t.log_index, t.address_id, t.amount_micro, t.block_time
  from chain_cursors c join transfers t on t.network = c.network
    -- Ids begin with the time at which they were made.
    and t.id > (lpad(to_hex((extract(epoch from c.solid_time - interval '26 hours') * 1000)::int8), 12, '0') || repeat('0', 20))::uuid
  where t.kind = 'unmatched' and t.block_time > c.solid_time - interval '24 hours' and t.amount_micro <= 9223372036854775807
  on conflict do nothing;

create or replace function forget_old_arrivals(of_network text, before timestamptz) returns void
  language sql security definer
begin atomic
  delete from arrivals a where a.network = of_network and a.first_time < before;
end;
revoke execute on function forget_old_arrivals from public;

-- Whether a transfer came after an invoice. Every way to PAID asks this: a block of before is no payment, in whatever block it stands now.
create or replace function may_pay(payable_after timestamptz, created_at timestamptz, of_network text, of_tx_id bytea, of_log_index integer, block_time timestamptz)
  returns boolean language sql stable
begin atomic
  select coalesce(
      (select a.first_time from arrivals a where a.network = of_network and a.tx_id = of_tx_id and a.log_index = of_log_index), block_time)
    > coalesce(payable_after, created_at - interval '10 minutes');
end;

create or replace function tie_transfer_to_invoice() returns trigger language plpgsql as $$
declare
  is_later boolean := (
    select may_pay(i.payable_after, i.created_at, new.network, new.tx_id, new.log_index, new.block_time) from invoices i
    where i.project_id = new.project_id and i.id = new.invoice_id
      and i.address_id = new.address_id and i.payable_micro = new.reserved_micro);
begin
  if is_later is null then
    raise exception 'transfer % of % is not to the address and of the amount that invoice % reserves',
      new.id, new.amount_micro, new.invoice_id using errcode = 'foreign_key_violation';
  end if;
  if not is_later then
    raise exception 'transfer % of % was on the chain before invoice %', new.id, new.block_time, new.invoice_id
      using errcode = 'check_violation';
  end if;
  return new;
end $$;
do $$
begin
  execute format('alter function tie_transfer_to_invoice() set search_path = pg_catalog, %I, pg_temp', current_schema());
end $$;
