-- Who may come in is sealed as other rows are, until it ends. Null: it has ended, or is older than its seal; "quittance ledger seal" seals
-- those that have not ended.
alter table people add column mac bytea check (octet_length(mac) = 24);
alter table passkeys add column mac bytea check (octet_length(mac) = 24);
alter table recovery_codes add column mac bytea check (octet_length(mac) = 24);
alter table invitations add column mac bytea check (octet_length(mac) = 24);
alter table sessions add column mac bytea check (octet_length(mac) = 24);
alter table admin_keys add column mac bytea check (octet_length(mac) = 24);

drop trigger people_keep_what_they_are on people;
create trigger people_keep_what_they_are before update on people for each row
  execute function keep_columns('role', 'projects', 'removed_at', 'password_hash', 'master_key_id', 'totp_sealed', 'totp_step',
    'misses', 'missed_at', 'mac');
drop trigger passkeys_keep_what_they_are on passkeys;
create trigger passkeys_keep_what_they_are before update on passkeys for each row
  execute function keep_columns('counter', 'last_used_at', 'removed_at', 'mac');
drop trigger recovery_codes_keep_what_they_are on recovery_codes;
create trigger recovery_codes_keep_what_they_are before update on recovery_codes for each row
  execute function keep_columns('ended_at', 'mac');
drop trigger admin_keys_keep_what_they_are on admin_keys;
create trigger admin_keys_keep_what_they_are before update on admin_keys for each row
  execute function keep_columns('last_used_at', 'revoked_at', 'mac');

-- Whoever kept a copy of a seal must not put it back.
create trigger invitations_stay_ended before update on invitations for each row
  when (old.ended_at is not null) execute function keep_columns();
create trigger sessions_stay_ended before update on sessions for each row
  when (old.ended_at is not null) execute function keep_columns();
