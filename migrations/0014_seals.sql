-- Who can write here, but does not hold the master key, can neither make a row nor change one unseen: each carries a MAC over what is never
-- changed without it. The first 8 bytes name the key, as in master_key_id. Null: the row is older than the seals; "quittance ledger seal"
-- seals those.
alter table invoices
  add column mac bytea check (octet_length(mac) = 24),
  add column paid_mac bytea check (octet_length(paid_mac) = 24);
alter table transfers add column mac bytea check (octet_length(mac) = 24);
alter table events add column mac bytea check (octet_length(mac) = 24);
alter table addresses add column mac bytea check (octet_length(mac) = 24);
alter table api_keys add column mac bytea check (octet_length(mac) = 24);
alter table webhook_endpoints add column mac bytea check (octet_length(mac) = 24);
alter table projects add column mac bytea check (octet_length(mac) = 24);
alter table account_keys add column mac bytea check (octet_length(mac) = 24);
alter table receipt_keys add column mac bytea check (octet_length(mac) = 24);
alter table producer_sets add column mac bytea check (octet_length(mac) = 24);
alter table chain_cursors add column mac bytea check (octet_length(mac) = 24);

-- What is kept stays so but for its MAC, which the ledger can do without and a rotation of the master key makes anew.
drop trigger if exists invoices_keep_what_they_are on invoices;
create trigger invoices_keep_what_they_are before update on invoices for each row
  execute function keep_columns('status', 'event_count', 'paid_transfer_id', 'expires_at', 'mac', 'paid_mac');
drop trigger if exists invoices_keep_their_deadline on invoices;
create trigger invoices_keep_their_deadline before update on invoices for each row
  when (old.network <> 'devnet' and old.expires_at <> new.expires_at)
  execute function keep_columns('status', 'event_count', 'paid_transfer_id', 'mac', 'paid_mac');
drop trigger if exists addresses_keep_what_they_are on addresses;
create trigger addresses_keep_what_they_are before update on addresses for each row
  execute function keep_columns('retired_at', 'barred_at', 'mac');
drop trigger if exists projects_keep_what_they_are on projects;
create trigger projects_keep_what_they_are before update on projects for each row
  execute function keep_columns('name', 'policy', 'max_surcharge_micro', 'invoice_lifetime_ms', 'allocation_epoch',
    'support_contact', 'return_url', 'accent', 'logo_id', 'max_unpaid', 'max_unpaid_per_minute', 'mac');
drop trigger if exists api_keys_keep_what_they_are on api_keys;
create trigger api_keys_keep_what_they_are before update on api_keys for each row
  execute function keep_columns('last_used_at', 'revoked_at', 'mac');
drop trigger if exists account_keys_keep_what_they_are on account_keys;
create trigger account_keys_keep_what_they_are before update on account_keys for each row
  execute function keep_columns('first_index', 'auto_derive_limit', 'auto_derived', 'mac');
drop trigger if exists webhook_endpoints_keep_what_they_are on webhook_endpoints;
create trigger webhook_endpoints_keep_what_they_are before update on webhook_endpoints for each row
  execute function keep_columns('url', 'description', 'event_types', 'failing_since', 'consecutive_failures',
    'open_until', 'disabled_at', 'disabled_reason', 'mac');
drop trigger if exists receipt_keys_keep_what_they_are on receipt_keys;
create trigger receipt_keys_keep_what_they_are before update on receipt_keys for each row
  execute function keep_columns('master_key_id', 'sealed', 'retired_at', 'mac');

drop trigger if exists transfers_are_kept on transfers;
create trigger transfers_are_kept before delete or truncate on transfers for each statement execute function keep_ledger_rows();
create trigger transfers_keep_what_they_are before update on transfers for each row execute function keep_columns('mac');
drop trigger if exists events_are_kept on events;
create trigger events_are_kept before delete or truncate on events for each statement execute function keep_ledger_rows();
create trigger events_keep_what_they_are before update on events for each row execute function keep_columns('mac');
drop trigger if exists producer_sets_are_kept on producer_sets;
create trigger producer_sets_are_kept before delete or truncate on producer_sets for each statement execute function keep_ledger_rows();
create trigger producer_sets_keep_what_they_are before update on producer_sets for each row execute function keep_columns('mac');
drop trigger if exists chain_cursors_keep_what_they_are on chain_cursors;
create trigger chain_cursors_keep_what_they_are before update on chain_cursors for each row
  execute function keep_columns('solid_number', 'solid_id', 'solid_time', 'updated_at', 'halted_at', 'halt_reason', 'mac');
