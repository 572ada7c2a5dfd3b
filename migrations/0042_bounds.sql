-- Each number and time that the service may write has bounds, and a counter that others depend on rises by small steps, so that no single
-- write leads a statement over the end of its type.

-- Gives columns their bounds: 'name low high', or 'name' alone for a time. Values that lie outside are brought back first, by a look that
-- locks nobody out. Not valid: the rest need not be looked at again.
create or replace function bound_columns(of_table regclass, variadic bounds text[]) returns void
  language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  found boolean;
  outside text;
  within text;
  bounded text;
begin
  select string_agg(format('%I not between %L and %L', name, low, high), ' or '),
    string_agg(format('%1$I = case when %1$I is not null then greatest(least(%1$I, %3$L::%4$s), %2$L::%4$s) end', name, low, high, type), ', '),
    string_agg(format('add constraint %I check (%I between %L and %L) not valid', relname || '_' || name || '_bounds', name, low, high), ', ')
  into outside, within, bounded
  from (
    select c.relname, a.attname as name, format_type(a.atttypid, null) as type,
      coalesce(nullif(split_part(b, ' ', 2), ''), '1970-01-01Z') as low, coalesce(nullif(split_part(b, ' ', 3), ''), '2200-01-01Z') as high
    from unnest(bounds) b join pg_class c on c.oid = of_table
      join pg_attribute a on a.attrelid = of_table and a.attname = split_part(b, ' ', 1)) bound;
  execute format('select exists (select from %s where %s)', of_table, outside) into found;
  if found then
    execute format('alter table %s disable trigger user', of_table);
    execute format('update %s set %s where %s', of_table, within, outside);
    execute format('alter table %s enable trigger user', of_table);
  end if;
  execute format('alter table %s %s', of_table, bounded);
end $$;
revoke execute on function bound_columns from public;
-- step
select bound_columns('invoices', 'event_count 0 1000000', 'withdrawn_at');
-- step
select bound_columns('deliveries', 'attempt_count 0 1000000', 'last_status 0 999', 'max_attempts 1 2000000', 'created_at', 'finished_at',
  'next_attempt_at');
-- step
select bound_columns('delivery_attempts', 'latency_ms 0 1000000000', 'status 0 999', 'attempted_at');
-- step
select bound_columns('account_keys', 'auto_derive_limit 0 1000000000', 'auto_derived 0 1000000000'),
  bound_columns('addresses', 'freeze_block 0 1000000000000', 'retired_at'),
  bound_columns('address_changes', 'ended_at'),
  bound_columns('admin_keys', 'last_used_at', 'revoked_at'),
  bound_columns('api_keys', 'last_used_at', 'revoked_at'),
  bound_columns('allocation_hints', 'epoch 0 1000000000', 'position 1 1000000000'),
  bound_columns('projects', 'archived_at', 'max_unpaid 1 1000000000', 'max_unpaid_per_minute 1 1000000000'),
  bound_columns('refused_amounts', 'refused_at');
-- step
select bound_columns('alarms', 'seen_count 1 1000000000', 'resolved_at', 'seen_at'),
  bound_columns('balance_checks', 'checked_block 0 1000000000000', 'good_block 0 1000000000000', 'checked_at', 'due_at'),
  bound_columns('chain_cursors', 'solid_number 0 1000000000000', 'pause_block 0 1000000000000', 'halted_at', 'live_at', 'live_time',
    'solid_time', 'updated_at'),
  bound_columns('chain_status', 'updated_at'),
  bound_columns('event_streams', 'last_position 1 1000000000000000'),
  bound_columns('leases', 'epoch 1 1000000000000000', 'expires_at'),
  bound_columns('ledger_identity', 'database_oid 0 4294967295', 'timeline 1 2147483646', 'taken_at'),
  bound_columns('producer_confirmations', 'confirmed_at');
-- step
select bound_columns('notifications', 'claimed_until', 'ended_at'),
  bound_columns('notify_channels', 'failures 0 1000000', 'due_at', 'failing_since', 'last_sent_at', 'removed_at'),
  bound_columns('people', 'misses 0 1000', 'totp_step 0 1000000000', 'missed_at', 'removed_at'),
  bound_columns('passkeys', 'counter 0 4294967295', 'last_used_at', 'removed_at'),
  bound_columns('recovery_codes', 'ended_at'),
  bound_columns('invitations', 'ended_at'),
  bound_columns('sessions', 'ended_at', 'seen_at', 'stepped_up_at'),
  bound_columns('receipt_keys', 'retired_at'),
  bound_columns('webhook_endpoints', 'consecutive_failures 0 1000000', 'rate_micro 1 1000000000000000', 'rate_min_micro 1 1000000000000000',
    'rate_max_micro 1 1000000000000000', 'read_micro 1 1000000000000000',
    'disabled_at', 'failing_since', 'open_until', 'read_at'),
  bound_columns('webhook_secrets', 'ends_at');
-- step
-- Whoever holds a lease that ends far ahead is not there.
update leases set epoch = 1, expires_at = now() where epoch = 1000000000000000 or expires_at > now() + interval '10 minutes';

-- For what the condition of a trigger finds wrong: the column, and what must hold.
create or replace function refuse_value() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  raise exception '% of % cannot become %: %', tg_argv[0], tg_table_name, to_jsonb(new) ->> tg_argv[0], tg_argv[1]
    using errcode = 'check_violation', constraint = tg_name;
end $$;

-- A time that lies so far ahead at most, by the clock of the server as the session sees it.
create or replace function refuse_later_than() returns trigger language plpgsql as $$
begin
  if (pg_catalog.to_jsonb(new) ->> tg_argv[0])::timestamptz > now() + tg_argv[1]::interval then
    raise exception '% of % cannot become %: it lies % ahead at most', tg_argv[0], tg_table_name, pg_catalog.to_jsonb(new) ->> tg_argv[0], tg_argv[1]
      using errcode = 'check_violation', constraint = tg_name;
  end if;
  return new;
end $$;

-- At its bound an epoch begins anew; holders have names that never come again.
create trigger leases_epoch_rises before update on leases for each row
  when (new.epoch <> old.epoch and new.epoch <> old.epoch + 1 and not (old.epoch = 1000000000000000 and new.epoch = 1))
  execute function refuse_value('epoch', 'it rises by 1');
create trigger leases_end_soon before insert or update of expires_at on leases for each row
  execute function refuse_later_than('expires_at', '10 minutes');

drop trigger event_streams_go_forward on event_streams;
create trigger event_streams_rise before update on event_streams for each row
  when (new.last_position < old.last_position or new.last_position > old.last_position + 1000000)
  execute function refuse_value('last_position', 'it rises by 1,000,000 at most');

create trigger chain_cursors_move_whole before update on chain_cursors for each row
  when ((new.solid_number <> old.solid_number) <> (new.solid_id <> old.solid_id) or new.solid_number = old.solid_number and new.solid_time <> old.solid_time
    or new.solid_number <> old.solid_number and new.mac = old.mac)
  execute function refuse_value('solid_number', 'it moves with the id, the time and the seal of its block');

-- Invoices are payable by the chain's time as it was seen, and counted on: it must not be later than now.
alter table chain_cursors add constraint chain_cursors_live_clocks check (live_time <= live_at + interval '30 seconds') not valid;
create trigger chain_cursors_were_live before update of live_at on chain_cursors for each row
  execute function refuse_later_than('live_at', '0 seconds');

-- What the contract does is of blocks that were seen: one of later would hide what comes before it.
create or replace function refuse_later_freeze() returns trigger language plpgsql as $$
begin
  if not exists (select from chain_cursors c where c.network = new.network and c.solid_number >= new.freeze_block - 1000) then
    raise exception 'freeze_block of addresses cannot become %: no process has seen that block', new.freeze_block
      using errcode = 'check_violation', constraint = tg_name;
  end if;
  return new;
end $$;
do $$
begin
  execute format('alter function refuse_later_freeze() set search_path = pg_catalog, %I, pg_temp', current_schema());
end $$;
create trigger addresses_freeze_is_seen before update on addresses for each row
  when (new.freeze_block is distinct from old.freeze_block and new.freeze_block is not null) execute function refuse_later_freeze();
create trigger chain_cursors_pause_is_seen before update on chain_cursors for each row
  when (new.pause_block is distinct from old.pause_block and new.pause_block > new.solid_number + 1000)
  execute function refuse_value('pause_block', 'no process has seen that block');

-- A ledger is marked as the one of the database that it is in; or as one that lacks invoices (0), where the server was promoted or does not say.
create or replace function keep_identity() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if new.database_oid = 0 and new.system_identifier is not distinct from old.system_identifier and new.timeline is not distinct from old.timeline then
    if old.timeline is null or not has_function_privilege('pg_control_checkpoint()', 'execute') then
      return new;
    end if;
    if (select timeline_id from pg_control_checkpoint()) > 1 then
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
create trigger ledger_identity_is_of_here before update on ledger_identity for each row
  when (new.system_identifier is distinct from old.system_identifier or new.database_oid <> old.database_oid
    or new.timeline is distinct from old.timeline)
  execute function keep_identity();
