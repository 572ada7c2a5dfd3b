-- People who use the console, what they prove by who they are, and their sessions. Of each secret there is a hash alone, but for what codes
-- of an authenticator app are made of, which is sealed under a master key.
create table people (
  id uuid primary key,
  login text not null check (login ~ '^[a-z0-9][a-z0-9._+@-]*$' and char_length(login) <= 100),
  name text not null check (char_length(name) between 1 and 100),
  role text not null check (role in ('viewer', 'operator', 'owner')),
  -- null: all, as an owner has.
  projects uuid[] check (cardinality(projects) between 1 and 1000),
  created_at timestamptz not null,
  removed_at timestamptz,
  password_hash text check (char_length(password_hash) between 1 and 200),
  master_key_id text,
  totp_sealed bytea check (octet_length(totp_sealed) between 1 and 200),
  -- The period of the last code that was taken: none is taken twice.
  totp_step bigint check (totp_step >= 0),
  -- Wrong codes beside the right password, which a leak of the password would bring.
  misses integer not null default 0 check (misses >= 0),
  missed_at timestamptz,
  constraint people_owners_see_all check (role <> 'owner' or projects is null),
  constraint people_totp check ((master_key_id is null) = (totp_sealed is null)),
  constraint people_password_needs_totp check ((password_hash is null) = (totp_sealed is null)),
  constraint people_removed_have_nothing check (removed_at is null or (password_hash is null and totp_sealed is null))
);
-- Logins have no capital letter, so this is without regard to them. Whoever was removed leaves the login to others.
create unique index people_login on people (login) where removed_at is null;

create trigger people_keep_what_they_are before update on people for each row
  execute function keep_columns('role', 'projects', 'removed_at', 'password_hash', 'master_key_id', 'totp_sealed', 'totp_step',
    'misses', 'missed_at');
create trigger people_stay_removed before update on people for each row
  when (old.removed_at is not null) execute function keep_columns();
create trigger people_take_no_code_again before update on people for each row
  when (new.totp_sealed = old.totp_sealed and new.totp_step < old.totp_step) execute function refuse_way_back('totp_step');
create trigger people_are_kept before delete or truncate on people for each statement execute function keep_ledger_rows();

-- The locks let two owners who demote each other take turns: the second one sees what the first one did.
create function keep_an_owner() returns trigger language plpgsql as $$
begin
  perform pg_advisory_xact_lock(hashtext(format('%I.people', tg_table_schema)));
  if not exists (select from people where role = 'owner' and removed_at is null and id <> old.id) then
    raise exception '% is the last owner', old.login using errcode = 'check_violation', constraint = 'people_last_owner';
  end if;
  return new;
end $$;
-- Whoever may choose the search_path of a session must not choose the table that it looks at.
do $$
begin
  execute format('alter function keep_an_owner() set search_path = pg_catalog, %I, pg_temp', current_schema());
end $$;
create trigger people_have_an_owner before update on people for each row
  when (old.role = 'owner' and old.removed_at is null and (new.role <> 'owner' or new.removed_at is not null))
  execute function keep_an_owner();

create table passkeys (
  -- As the authenticator chose it.
  id bytea primary key check (octet_length(id) between 16 and 1023),
  person_id uuid not null references people (id),
  public_key bytea not null check (octet_length(public_key) between 1 and 4096),
  counter bigint not null check (counter between 0 and 4294967295),
  transports text[] not null check (cardinality(transports) <= 10),
  name text not null check (char_length(name) between 1 and 100),
  created_at timestamptz not null,
  last_used_at timestamptz,
  removed_at timestamptz
);
create index passkeys_person on passkeys (person_id);
create trigger passkeys_keep_what_they_are before update on passkeys for each row
  execute function keep_columns('counter', 'last_used_at', 'removed_at');
create trigger passkeys_stay_removed before update on passkeys for each row
  when (old.removed_at is not null) execute function keep_columns();
create trigger passkeys_go_forward before update on passkeys for each row
  when (new.counter < old.counter) execute function refuse_way_back('counter');
create trigger passkeys_are_kept before delete or truncate on passkeys for each statement execute function keep_ledger_rows();

-- ended_at: used, or replaced by others.
create table recovery_codes (
  sha256 bytea primary key check (octet_length(sha256) = 32),
  person_id uuid not null references people (id),
  created_at timestamptz not null,
  ended_at timestamptz
);
create index recovery_codes_person on recovery_codes (person_id) where ended_at is null;
create trigger recovery_codes_keep_what_they_are before update on recovery_codes for each row execute function keep_columns('ended_at');
create trigger recovery_codes_stay_ended before update on recovery_codes for each row
  when (old.ended_at is not null) execute function keep_columns();
create trigger recovery_codes_are_kept before delete or truncate on recovery_codes for each statement execute function keep_ledger_rows();

-- The rest belongs to this database and to these minutes: no backup holds it.
create table invitations (
  sha256 bytea primary key check (octet_length(sha256) = 32),
  person_id uuid not null references people (id),
  kind text not null check (kind in ('invite', 'reset')),
  created_at timestamptz not null,
  expires_at timestamptz not null,
  ended_at timestamptz,
  check (expires_at <= created_at + interval '15 minutes')
);
create unique index invitations_person on invitations (person_id) where ended_at is null;

create table sessions (
  id uuid primary key,
  sha256 bytea not null unique check (octet_length(sha256) = 32),
  person_id uuid not null references people (id),
  proof text not null check (proof in ('passkey', 'totp', 'recovery-code')),
  created_at timestamptz not null,
  seen_at timestamptz not null,
  ended_at timestamptz,
  stepped_up_at timestamptz,
  origin text not null check (char_length(origin) between 1 and 200),
  -- The part of the address by which clients are counted: from here the person has signed in before.
  client_network text not null constraint sessions_client_network_length check (char_length(client_network) between 1 and 200),
  user_agent text check (char_length(user_agent) <= 200)
);
create index sessions_person on sessions (person_id, created_at);
create index sessions_created on sessions (created_at);

-- Challenges that a passkey has signed. They are made of a nonce, an end and a seal, so one that nobody answers is stored nowhere.
create table spent_challenges (
  sha256 bytea primary key check (octet_length(sha256) = 32),
  expires_at timestamptz not null
);
create index spent_challenges_end on spent_challenges (expires_at);

-- Deletes up to 1,000 rows of each kind that grow old: sessions that began before, invitations and challenges that ended before.
create function forget_old_sessions(before timestamptz) returns void language sql security definer
begin atomic
  delete from sessions where id in (select id from sessions where created_at < before order by created_at limit 1000);
  delete from invitations where sha256 in (select sha256 from invitations where expires_at < before limit 1000);
  delete from spent_challenges where sha256 in (select sha256 from spent_challenges where expires_at < before order by expires_at limit 1000);
end;
revoke execute on function forget_old_sessions from public;
