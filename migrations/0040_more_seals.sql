-- What left an address is sealed as what came is: "transfers refund" relies on it. Null: it is older than its seal; "quittance ledger seal" seals
-- those. Corrections inherit the column.
alter table outgoing_transfers add column mac bytea;
alter table outgoing_transfers add constraint outgoing_transfers_mac_check check (octet_length(mac) = 24) not valid;
drop trigger outgoing_transfers_are_kept on outgoing_transfers;
create trigger outgoing_transfers_are_kept before delete or truncate on outgoing_transfers for each statement
  execute function keep_ledger_rows();
create trigger outgoing_transfers_keep_what_they_are before update on outgoing_transfers for each row execute function keep_columns('mac');
drop trigger outgoing_corrections_are_kept on outgoing_corrections;
create trigger outgoing_corrections_are_kept before delete or truncate on outgoing_corrections for each statement
  execute function keep_ledger_rows();
create trigger outgoing_corrections_keep_what_they_are before update on outgoing_corrections for each row execute function keep_columns('mac');

-- Limits have a seal of their own, for a project without one has the usual limits and needs none.
alter table projects add column limits_mac bytea check (octet_length(limits_mac) = 24);
drop trigger projects_keep_what_they_are on projects;
create trigger projects_keep_what_they_are before update on projects for each row
  execute function keep_columns('name', 'policy', 'max_surcharge_micro', 'invoice_lifetime_ms', 'allocation_epoch', 'support_contact',
    'return_url', 'embed_origins', 'accent', 'logo_id', 'max_unpaid', 'max_unpaid_per_minute', 'archived_at', 'mac', 'limits_mac');

-- Quittance leaves an endpoint alone for 5 minutes at most. Twice that is the most that a wrong clock, or somebody else, can make of it.
create or replace function bound_pause() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  new.open_until := least(new.open_until, now() + interval '10 minutes');
  return new;
end $$;
create trigger webhook_endpoints_bound_pauses before insert or update of open_until on webhook_endpoints for each row
  when (new.open_until is not null) execute function bound_pause();
-- step
alter table outgoing_transfers validate constraint outgoing_transfers_mac_check;
