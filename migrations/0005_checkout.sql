-- What a payer's page shows of the merchant, who watches it live, and what its receipts are signed with.

-- Logos stand under the digest of their bytes and never change; one that no project names any more is small and stays.
create table logos (
  id text primary key check (id ~ '^[0-9a-f]{32}$'),
  type text not null check (type in ('image/png', 'image/jpeg', 'image/webp')),
  content bytea not null check (octet_length(content) between 1 and 32768),
  created_at timestamptz not null default now()
);

alter table projects
  add column support_contact text check (char_length(support_contact) between 1 and 200),
  add column return_url text check (char_length(return_url) between 1 and 2048),
  add column accent text check (accent ~ '^#[0-9a-f]{6}$'),
  add column logo_id text references logos (id);

-- Said at the commit, whoever changes a status and in whatever release. The payload is the id of the invoice.
create function tell_invoice_status() returns trigger language plpgsql as $$
begin
  perform pg_notify('quittance_invoices', new.id::text);
  return null;
end $$;
create trigger invoices_tell_their_status after update of status on invoices for each row
  when (old.status is distinct from new.status)
  execute function tell_invoice_status();

-- Ed25519 keys (RFC 8032). id is the thumbprint of the public key as a JWK (RFC 7638); the private one is sealed as the secrets
-- of webhooks are. Rows are never deleted, so that a receipt can be checked for ever; a key whose seal is gone signs no more.
create table receipt_keys (
  id text primary key check (id ~ '^[A-Za-z0-9_-]{43}$'),
  public_key bytea not null unique check (octet_length(public_key) = 32),
  master_key_id text check (master_key_id ~ '^[0-9a-f]{16}$'),
  sealed bytea check (octet_length(sealed) = 60),
  created_at timestamptz not null,
  retired_at timestamptz,
  constraint receipt_keys_sealed check ((sealed is null) = (master_key_id is null)),
  constraint receipt_keys_signs check (retired_at is not null or sealed is not null)
);
-- One key signs at a time.
create unique index receipt_keys_current on receipt_keys ((true)) where retired_at is null;

-- Where a transfer stands in its block, so that of two payments in one block the first is shown. 0 for those of a former release.
alter table sightings add column position integer not null default 0 check (position >= 0);
