-- Keys of the admin API. Only the SHA-256 of a key is kept. projects: those that it may see; null: all.
create table admin_keys (
  id uuid primary key,
  name text not null check (char_length(name) between 1 and 100),
  secret_sha256 bytea not null check (octet_length(secret_sha256) = 32),
  role text not null check (role in ('viewer', 'operator', 'owner')),
  projects uuid[] check (cardinality(projects) between 1 and 100),
  allowed_cidrs text[],
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz
);

create trigger admin_keys_keep_what_they_are before update on admin_keys for each row
  execute function keep_columns('last_used_at', 'revoked_at');
create trigger admin_keys_stay_revoked before update on admin_keys for each row
  when (old.revoked_at is not null and new.revoked_at is distinct from old.revoked_at)
  execute function refuse_way_back('revoked_at');
create trigger admin_keys_are_kept before delete or truncate on admin_keys for each statement execute function keep_ledger_rows();
