-- Secrets of webhooks stand sealed in webhook_secrets since 0004. The column of before was read at each start, so that whoever could
-- write to it had webhooks signed with a secret of theirs. Nothing reads it any more but the upgrade from a release before 0004, which
-- seals what it finds before this. It stays, because processes of the former release name it, and holds nothing.
do $$
declare
  found text;
begin
  select string_agg(id::text, ', ') into found
  from (select id from webhook_endpoints where secret is not null order by created_at, id limit 5) as first;
  if found is null then return; end if;
  raise exception 'the column webhook_endpoints.secret holds secrets as plain text (of %), which are not sealed here; nothing was changed. If this ledger is of a release that had no sealed secrets, upgrade it with QUITTANCE_MASTER_KEY set, by "quittance migrate" or by a process with the role webhooks. If not, either no process with the role webhooks was ever started in the release before this one: start that one once; or somebody who can write to the database put them there: find out who, set the column to null, and give these endpoints new secrets by "quittance webhook rotate"', found
    using errcode = 'QT008';
end $$;
alter table webhook_endpoints add constraint webhook_endpoints_no_plain_secret check (secret is null);

-- What bounds a flood of orders: how many unpaid invoices a project takes, and how many addresses an account key yields by itself.

-- Of the last 30 minutes and of the last one; null: no limit. A local network has nobody to flood it.
alter table projects
  add column max_unpaid integer default 600 check (max_unpaid > 0),
  add column max_unpaid_per_minute integer default 120 check (max_unpaid_per_minute > 0);
update projects set max_unpaid = null, max_unpaid_per_minute = null where network = 'devnet';

-- 0 for the keys that there are, and for those of the former release: how far their wallets look is not known.
alter table account_keys
  add column auto_derive_limit integer not null default 0 check (auto_derive_limit >= 0),
  add column auto_derived integer not null default 0 check (auto_derived >= 0);

-- The text that people see is that of the account that the watcher looks for: base58check of 0x41 and the account.
create function tron_address(account bytea) returns text language plpgsql immutable strict parallel safe
  set search_path = pg_catalog, pg_temp as $$
declare
  bytes bytea := '\x41'::bytea || account;
  number numeric := 0;
  address text := '';
begin
  bytes := bytes || substr(sha256(sha256(bytes)), 1, 4);
  for i in 0 .. length(bytes) - 1 loop
    number := number * 256 + get_byte(bytes, i);
  end loop;
  while number > 0 loop
    address := substr('123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz', (number % 58)::integer + 1, 1) || address;
    number := div(number, 58);
  end loop;
  return address;
end $$;

do $$
declare
  damaged text;
begin
  select string_agg(format('%s has the account of %s (id %s)', address, tron_address(account), id), ', ') into damaged
  from (select id, address, account from addresses where address <> tron_address(account) order by id limit 10) a;
  if damaged is not null then
    raise exception 'somebody changed addresses: %. Find out which of the two is yours and who changed the other; then, as the owner of the tables: alter table addresses disable trigger addresses_are_for_life; update addresses set address = …, account = … where id = …; alter table addresses enable trigger addresses_are_for_life',
      damaged using errcode = 'QT008';
  end if;
end $$;
alter table addresses add constraint addresses_text check (address = tron_address(account));

-- What the service never changes, nobody changes by a plain statement: each trigger names the columns that may change, so that a
-- column of a later release is kept unless its migration says otherwise.

-- Nothing but PostgreSQL's own may be found by name: to_jsonb(invoices) of somebody in our schema would go before theirs, which takes
-- anything, and a temporary type jsonb before jsonb.
create function keep_columns() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  -- Without an argument the list is null.
  before jsonb := to_jsonb(old) - coalesce(tg_argv, '{}');
  after jsonb := to_jsonb(new) - coalesce(tg_argv, '{}');
begin
  if before is distinct from after then
    raise exception '% of % % is never changed',
      (select string_agg(key, ', ' order by key) from jsonb_each(before) where value is distinct from after -> key),
      tg_table_name, coalesce(before ->> 'id', '') using errcode = 'check_violation';
  end if;
  return new;
end $$;

create function refuse_way_back() returns trigger language plpgsql as $$
begin
  raise exception '% of % never goes back', tg_argv[0], tg_table_name using errcode = 'check_violation';
end $$;

drop trigger invoices_reservation_is_permanent on invoices;
drop function keep_reservations();
create trigger invoices_keep_what_they_are before update on invoices for each row
  execute function keep_columns('status', 'event_count', 'paid_transfer_id', 'expires_at');
-- The sandbox brings deadlines forward.
create trigger invoices_keep_their_deadline before update on invoices for each row
  when (old.network <> 'devnet' and old.expires_at <> new.expires_at)
  execute function keep_columns('status', 'event_count', 'paid_transfer_id');

drop trigger addresses_are_for_life on addresses;
drop function keep_addresses();
create trigger addresses_keep_what_they_are before update on addresses for each row
  execute function keep_columns('retired_at', 'barred_at');

create trigger projects_keep_what_they_are before update on projects for each row
  execute function keep_columns('name', 'policy', 'max_surcharge_micro', 'invoice_lifetime_ms', 'allocation_epoch',
    'support_contact', 'return_url', 'accent', 'logo_id', 'max_unpaid', 'max_unpaid_per_minute');

create trigger api_keys_keep_what_they_are before update on api_keys for each row
  execute function keep_columns('last_used_at', 'revoked_at');
create trigger api_keys_stay_revoked before update on api_keys for each row
  when (old.revoked_at is not null and new.revoked_at is distinct from old.revoked_at)
  execute function refuse_way_back('revoked_at');

create trigger account_keys_keep_what_they_are before update on account_keys for each row
  execute function keep_columns('first_index', 'auto_derive_limit', 'auto_derived');
-- An index that is passed over may have been given away by the ledger that a backup was made of.
create trigger account_keys_go_forward before update on account_keys for each row
  when (new.first_index < old.first_index) execute function refuse_way_back('first_index');

create trigger webhook_endpoints_keep_what_they_are before update on webhook_endpoints for each row
  execute function keep_columns('url', 'description', 'event_types', 'failing_since', 'consecutive_failures',
    'open_until', 'disabled_at', 'disabled_reason');
create trigger webhook_secrets_keep_what_they_are before update on webhook_secrets for each row
  execute function keep_columns('master_key_id', 'sealed', 'ends_at');
-- Named one by one, because three updates go with each delivery, and a comparison of whole rows takes longer. Not as (…) is distinct
-- from (…), of which PostgreSQL says something else after a dump.
create trigger deliveries_keep_what_they_are before update on deliveries for each row
  when (old.event_id is distinct from new.event_id or old.endpoint_id is distinct from new.endpoint_id
    or old.project_id is distinct from new.project_id or old.invoice_id is distinct from new.invoice_id
    or old.sequence is distinct from new.sequence)
  execute function keep_columns();

create trigger receipt_keys_keep_what_they_are before update on receipt_keys for each row
  execute function keep_columns('master_key_id', 'sealed', 'retired_at');
create trigger receipt_keys_stay_retired before update on receipt_keys for each row
  when (old.retired_at is not null and new.retired_at is null) execute function refuse_way_back('retired_at');

create trigger ledger_identity_keeps_what_it_is before update on ledger_identity for each row
  execute function keep_columns('system_identifier', 'database_oid', 'timeline', 'taken_at', 'closed_at', 'first_index');
create trigger ledger_identity_stays_closed before update on ledger_identity for each row
  when (old.closed_at is not null and new.closed_at is distinct from old.closed_at)
  execute function refuse_way_back('closed_at');
create trigger ledger_identity_goes_forward before update on ledger_identity for each row
  when (new.first_index < old.first_index) execute function refuse_way_back('first_index');

create trigger event_streams_keep_what_they_are before update on event_streams for each row
  execute function keep_columns('last_position');
create trigger event_streams_go_forward before update on event_streams for each row
  when (new.last_position < old.last_position) execute function refuse_way_back('last_position');

create trigger chain_cursors_keep_what_they_are before update on chain_cursors for each row
  execute function keep_columns('solid_number', 'solid_id', 'solid_time', 'updated_at', 'halted_at', 'halt_reason');
create trigger balance_checks_keep_what_they_are before update on balance_checks for each row
  execute function keep_columns('good_block', 'checked_block', 'balance_micro', 'expected_micro', 'node', 'checked_at', 'due_at');

create trigger alarms_keep_what_they_are before update on alarms for each row
  execute function keep_columns('detail', 'seen_at', 'seen_count', 'resolved_at');
create trigger alarms_stay_resolved before update on alarms for each row
  when (old.resolved_at is not null) execute function keep_columns();

create trigger logos_are_kept before update on logos for each statement execute function keep_ledger_rows();

create trigger projects_are_kept before delete or truncate on projects for each statement execute function keep_ledger_rows();
create trigger api_keys_are_kept before delete or truncate on api_keys for each statement execute function keep_ledger_rows();
create trigger account_keys_are_kept before delete or truncate on account_keys for each statement execute function keep_ledger_rows();
create trigger webhook_endpoints_are_kept before delete or truncate on webhook_endpoints for each statement
  execute function keep_ledger_rows();
create trigger webhook_secrets_are_kept before delete or truncate on webhook_secrets for each statement
  execute function keep_ledger_rows();
create trigger receipt_keys_are_kept before delete or truncate on receipt_keys for each statement execute function keep_ledger_rows();
create trigger ledger_identity_is_kept before delete or truncate on ledger_identity for each statement
  execute function keep_ledger_rows();
create trigger event_streams_are_kept before delete or truncate on event_streams for each statement
  execute function keep_ledger_rows();
create trigger chain_cursors_are_kept before delete or truncate on chain_cursors for each statement
  execute function keep_ledger_rows();
create trigger balance_checks_are_kept before delete or truncate on balance_checks for each statement
  execute function keep_ledger_rows();
create trigger alarms_are_kept before delete or truncate on alarms for each statement execute function keep_ledger_rows();

-- What lets the service run as a role that owns nothing (deploy/roles.sql): nothing here is of use to the owner.

-- The role may delete no row. What is no part of the ledger goes by these, which reach nothing else: the names in a body of this kind
-- are bound here, whatever the caller's search_path is.
create function forget_head_blocks_above(of_network text, height bigint, kept jsonb) returns void
  language sql security definer
begin atomic
  delete from head_blocks h where h.network = of_network and h.number > height and not exists (
    select from jsonb_array_elements(kept) k
    where (k->>'number')::int8 = h.number and decode(k->>'id', 'hex') = h.block_id);
end;

create function forget_head_blocks_up_to(of_network text, height bigint) returns void
  language sql security definer
begin atomic
  delete from head_blocks h where h.network = of_network and h.number <= height;
end;

-- Ids of events begin with their time, 48 bits of milliseconds (UUIDv7), so the primary key finds what is old. A delivery that was
-- replayed since has ended later than its event.
create function forget_finished_deliveries(behind uuid, before timestamptz, at_once bigint, out last text, out deleted bigint)
  language sql security definer
begin atomic
  with seen as materialized (
    select event_id, endpoint_id from deliveries
    where event_id > behind
      and event_id < (lpad(to_hex((extract(epoch from before) * 1000)::int8), 12, '0') || repeat('0', 20))::uuid
    order by event_id fetch first (at_once) rows with ties),
  old as materialized (
    select d.event_id, d.endpoint_id from seen cross join lateral (
      select d.event_id, d.endpoint_id from deliveries d
      where d.event_id = seen.event_id and d.endpoint_id = seen.endpoint_id and d.status <> 'pending' and d.finished_at < before
      for update skip locked) d),
  attempts as (
    delete from delivery_attempts a using old where a.event_id = old.event_id and a.endpoint_id = old.endpoint_id),
  gone as (
    delete from deliveries d using old where d.event_id = old.event_id and d.endpoint_id = old.endpoint_id returning 1)
  select (select max(event_id::text) from seen), (select count(*) from gone);
end;

-- To lock a row takes the right to change it, and a transfer is never changed.
create function lock_transfers(ids uuid[]) returns setof uuid
  language sql security definer
begin atomic
  select t.id from transfers t where t.id = any(ids) order by t.id for no key update;
end;

-- A trial on a local network need not wait for a deadline. Of every other invoice it stays as it is.
create function hurry_devnet_invoice(token text, deadline timestamptz) returns timestamptz
  language sql security definer
begin atomic
  update invoices set expires_at = least(expires_at, deadline)
  where checkout_token = token and network = 'devnet' and status = 'PENDING' returning expires_at;
end;

-- It changes projects for whoever brings an address back into use.
alter function forget_allocation_hints() security definer;

-- Whoever may choose the search_path of a session must not choose the tables that a guard looks at; temporary ones come last.
do $$
declare
  guard text;
begin
  foreach guard in array array['tie_transfer_to_invoice', 'take_event_position', 'forget_allocation_hints', 'refuse_resolved_match',
    'name_denied_payment', 'refuse_denied_payment', 'follow_annulled']
  loop
    execute format('alter function %I() set search_path = pg_catalog, %I, pg_temp', guard, current_schema());
  end loop;
end $$;

revoke execute on function forget_head_blocks_above, forget_head_blocks_up_to, forget_finished_deliveries, lock_transfers,
  hurry_devnet_invoice, forget_allocation_hints from public;
