-- What Tether's contract does to one address, and to all transfers. 'seen': in a block that can still be orphaned, so the state goes with
-- the block. 'lifted': Tether let the address go, and no operator has taken it into use again. The block is that of the newest
-- irreversible change that was applied, so a block that is applied twice changes nothing.
alter table addresses
  add column freeze_state text check (freeze_state in ('seen', 'frozen', 'lifted')),
  add column freeze_block bigint check (freeze_block >= 0);
alter table chain_cursors
  add column pause_state text check (pause_state in ('seen', 'paused')),
  add column pause_block bigint check (pause_block >= 0);
create index addresses_frozen on addresses (network) where freeze_state is not null;

drop trigger addresses_keep_what_they_are on addresses;
create trigger addresses_keep_what_they_are before update on addresses for each row
  execute function keep_columns('retired_at', 'barred_at', 'freeze_state', 'freeze_block', 'mac');

select guard_columns('chain_cursors', array['solid_number', 'solid_id', 'solid_time', 'updated_at', 'live_time', 'live_at', 'halted_at',
  'halt_reason', 'pause_state', 'pause_block', 'mac']);

-- A frozen address that comes back into use makes hints untrue, as a retired one does.
create or replace function forget_allocation_hints() returns trigger language plpgsql security definer as $$
begin
  update projects set allocation_epoch = allocation_epoch + 1 where id in (
    select n.project_id from new_rows n join old_rows o on o.id = n.id
    where (o.retired_at is not null or o.freeze_state is not null) and n.retired_at is null and n.freeze_state is null);
  return null;
end $$;
do $$
begin
  execute format('alter function forget_allocation_hints() set search_path = pg_catalog, %I, pg_temp', current_schema());
end $$;

-- Open pages may show something else now, whatever their invoice is.
create or replace function tell_all_pages() returns trigger language plpgsql as $$
begin
  perform pg_notify('quittance_invoices', 'all');
  return null;
end $$;
create trigger addresses_tell_their_freeze after update of freeze_state on addresses for each row
  when (old.freeze_state is distinct from new.freeze_state)
  execute function tell_all_pages();
create trigger chain_cursors_tell_their_pause after update of pause_state on chain_cursors for each row
  when (old.pause_state is distinct from new.pause_state)
  execute function tell_all_pages();

-- The alarm 'address-frozen' takes the place of this one. The watcher raises it for these addresses as soon as it runs.
update addresses a set freeze_state = 'frozen' from alarms l
  where l.kind = 'address-blacklisted' and l.resolved_at is null and l.network = a.network and l.subject = a.address;
update alarms set resolved_at = now() where kind = 'address-blacklisted' and resolved_at is null;
