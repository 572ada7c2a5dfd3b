-- The ledger of Quittance. Rows of invoices, transfers and events are never deleted: an (address, amount) that was
-- once reserved stays reserved, and every fact can be explained later.
-- Networks are kept apart by composite foreign keys that carry (project_id, network) from table to table.

create table projects (
  id uuid primary key,
  name text not null check (char_length(name) between 1 and 100),
  network text not null check (network in ('mainnet', 'nile', 'devnet')),
  max_surcharge_micro bigint not null default 10000 check (max_surcharge_micro between 100 and 1000000),
  invoice_lifetime_ms bigint not null default 1800000 check (invoice_lifetime_ms between 300000 and 2592000000),
  created_at timestamptz not null default now(),
  unique (id, network)
);

create table api_keys (
  id uuid primary key,
  project_id uuid not null,
  network text not null,
  name text not null check (char_length(name) between 1 and 100),
  secret_sha256 bytea not null check (octet_length(secret_sha256) = 32),
  allowed_cidrs text[],
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  foreign key (project_id, network) references projects (id, network)
);
create index api_keys_project on api_keys (project_id);

-- account is the 20 bytes that a Transfer log carries; address is the same in base58.
create table addresses (
  id uuid primary key,
  project_id uuid not null,
  network text not null,
  account bytea not null check (octet_length(account) = 20),
  address text not null check (char_length(address) = 34),
  policy text not null default 'tail' check (policy in ('tail', 'exact')),
  position integer not null check (position > 0),
  created_at timestamptz not null default now(),
  retired_at timestamptz,
  foreign key (project_id, network) references projects (id, network),
  unique (network, account),
  unique (project_id, position),
  unique (project_id, network, id)
);

-- The invoice row is the idempotency record, the reservation of (address, amount), and the order's state in one, so
-- that a single insert creates all of it or nothing.
create table invoices (
  id uuid not null,
  project_id uuid not null,
  network text not null,
  address_id uuid not null,
  idempotency_key text not null check (idempotency_key ~ '^[!-~]{1,255}$'),
  external_id text not null check (char_length(external_id) between 1 and 200),
  requested_micro bigint not null check (requested_micro > 0),
  payable_micro bigint not null check (payable_micro >= requested_micro),
  status text not null default 'PENDING' check (status in ('PENDING', 'CONFIRMING', 'EXPIRED', 'PAID')),
  checkout_token text not null check (char_length(checkout_token) between 16 and 22),
  created_at timestamptz not null,
  expires_at timestamptz not null,
  event_count integer not null default 0 check (event_count >= 0),
  paid_transfer_id uuid,
  primary key (project_id, id),
  constraint invoices_idempotency_key unique (project_id, idempotency_key),
  constraint invoices_external_id unique (project_id, external_id),
  constraint invoices_reservation unique (address_id, payable_micro),
  constraint invoices_checkout_token unique (checkout_token),
  foreign key (project_id, network, address_id) references addresses (project_id, network, id),
  constraint invoices_paid_by_transfer check ((status = 'PAID') = (paid_transfer_id is not null))
);
create index invoices_expiry on invoices (network, expires_at) where status = 'PENDING';

create function keep_paid_invoices() returns trigger language plpgsql as $$
begin
  raise exception 'invoice % is PAID, and PAID is never left', old.id using errcode = 'check_violation';
end $$;
create trigger invoices_paid_is_final before update on invoices for each row
  when (old.status = 'PAID' and (new.status <> 'PAID' or new.paid_transfer_id <> old.paid_transfer_id))
  execute function keep_paid_invoices();

create function keep_reservations() returns trigger language plpgsql as $$
begin
  raise exception 'what invoice % reserves is never changed', old.id using errcode = 'check_violation';
end $$;
create trigger invoices_reservation_is_permanent before update on invoices for each row
  when ((old.project_id, old.id, old.network, old.address_id, old.payable_micro, old.idempotency_key, old.external_id)
    is distinct from (new.project_id, new.id, new.network, new.address_id, new.payable_micro, new.idempotency_key, new.external_id))
  execute function keep_reservations();

create function keep_ledger_rows() returns trigger language plpgsql as $$
begin
  raise exception 'rows of % are never %', tg_table_name,
    case tg_op when 'UPDATE' then 'changed' else 'deleted' end using errcode = 'check_violation';
end $$;
create trigger invoices_are_kept before delete or truncate on invoices for each statement
  execute function keep_ledger_rows();

-- Irreversible transfers to our addresses, each exactly once. A matched or duplicate transfer is tied to the invoice that
-- reserves exactly its address and amount, and pays no other.
create table transfers (
  id uuid primary key,
  project_id uuid not null,
  network text not null,
  address_id uuid not null,
  tx_id bytea not null check (octet_length(tx_id) = 32),
  log_index integer not null check (log_index >= 0),
  block_number bigint not null check (block_number >= 0),
  block_id bytea not null check (octet_length(block_id) = 32),
  block_time timestamptz not null,
  from_address text not null,
  amount_micro numeric(78, 0) not null check (amount_micro > 0),
  kind text not null check (kind in ('matched', 'duplicate', 'unmatched')),
  invoice_id uuid,
  reserved_micro bigint,
  recorded_at timestamptz not null default now(),
  unique (network, tx_id, log_index),
  unique (id, project_id, invoice_id),
  foreign key (project_id, network, address_id) references addresses (project_id, network, id),
  foreign key (project_id, invoice_id) references invoices (project_id, id),
  constraint transfers_kind check (
    case kind
      when 'unmatched' then invoice_id is null and reserved_micro is null
      else invoice_id is not null and reserved_micro is not null and reserved_micro = amount_micro
    end)
);
create unique index transfers_pay_once on transfers (project_id, invoice_id) where kind = 'matched';
create index transfers_address on transfers (address_id, block_number);
create trigger transfers_are_kept before update or delete or truncate on transfers for each statement
  execute function keep_ledger_rows();

-- A foreign key would need one more index over all invoices, and every creation would pay for it; transfers are few.
-- Neither side can change later.
create function tie_transfer_to_invoice() returns trigger language plpgsql as $$
begin
  if not exists (
    select from invoices i
    where i.project_id = new.project_id and i.id = new.invoice_id
      and i.address_id = new.address_id and i.payable_micro = new.reserved_micro) then
    raise exception 'transfer % of % is not to the address and of the amount that invoice % reserves',
      new.id, new.amount_micro, new.invoice_id using errcode = 'foreign_key_violation';
  end if;
  return new;
end $$;
create trigger transfers_fit_their_invoice before insert on transfers for each row when (new.invoice_id is not null)
  execute function tie_transfer_to_invoice();

alter table invoices add foreign key (paid_transfer_id, project_id, id) references transfers (id, project_id, invoice_id)
  deferrable initially deferred;

-- Where the watcher of a network stands. Moved only in the transaction that records what the blocks hold.
create table chain_cursors (
  network text primary key,
  solid_number bigint not null check (solid_number >= 0),
  solid_id bytea not null check (octet_length(solid_id) = 32),
  solid_time timestamptz not null,
  updated_at timestamptz not null default now()
);

-- Examined blocks above the solid one, contiguous from it and linked by parent. They may be orphaned.
create table head_blocks (
  network text not null references chain_cursors (network),
  number bigint not null check (number > 0),
  block_id bytea not null check (octet_length(block_id) = 32),
  block_time timestamptz not null,
  primary key (network, number)
);

-- Exact transfers seen in head blocks. They make an invoice CONFIRMING and go when their block is orphaned or solid.
create table sightings (
  network text not null,
  block_number bigint not null,
  tx_id bytea not null check (octet_length(tx_id) = 32),
  log_index integer not null check (log_index >= 0),
  project_id uuid not null,
  invoice_id uuid not null,
  from_address text not null,
  amount_micro bigint not null check (amount_micro > 0),
  primary key (network, tx_id, log_index),
  foreign key (network, block_number) references head_blocks (network, number) on delete cascade,
  foreign key (project_id, network) references projects (id, network),
  foreign key (project_id, invoice_id) references invoices (project_id, id)
);
create index sightings_invoice on sightings (project_id, invoice_id);
create index sightings_block on sightings (network, block_number);

-- One state change is one event. body holds the bytes that are sent.
create table events (
  id uuid primary key,
  project_id uuid not null,
  network text not null,
  type text not null,
  invoice_id uuid,
  transfer_id uuid references transfers (id),
  sequence integer not null check (sequence > 0),
  body text not null check (octet_length(body) < 20000),
  created_at timestamptz not null default now(),
  foreign key (project_id, network) references projects (id, network),
  foreign key (project_id, invoice_id) references invoices (project_id, id),
  unique (project_id, invoice_id, sequence)
);
create index events_transfer on events (transfer_id) where transfer_id is not null;
create trigger events_are_kept before update or delete or truncate on events for each statement
  execute function keep_ledger_rows();

create table webhook_endpoints (
  id uuid primary key,
  project_id uuid not null,
  network text not null,
  url text not null check (char_length(url) <= 2048),
  secret text not null,
  created_at timestamptz not null default now(),
  failing_since timestamptz,
  disabled_at timestamptz,
  disabled_reason text,
  foreign key (project_id, network) references projects (id, network),
  unique (project_id, id)
);

-- A delivery is leased by moving next_attempt_at past the time that one attempt can take; the lease of a crashed sender runs
-- out by itself. attempt_count at the time of the lease fences a sender that comes back too late.
create table deliveries (
  event_id uuid not null references events (id),
  endpoint_id uuid not null,
  project_id uuid not null,
  invoice_id uuid,
  sequence integer not null,
  status text not null default 'pending' check (status in ('pending', 'delivered', 'dead')),
  attempt_count integer not null default 0 check (attempt_count >= 0),
  next_attempt_at timestamptz not null default now(),
  created_at timestamptz not null default now(),
  finished_at timestamptz,
  last_status integer,
  last_error text,
  primary key (event_id, endpoint_id),
  foreign key (project_id, endpoint_id) references webhook_endpoints (project_id, id)
);
create index deliveries_due on deliveries (endpoint_id, next_attempt_at, created_at) where status = 'pending';
create index deliveries_order on deliveries (endpoint_id, invoice_id, sequence) where status = 'pending';

-- Who works for a network. Each write of a watcher checks holder and epoch in its own transaction (fencing).
create table leases (
  name text primary key,
  holder text not null,
  epoch bigint not null,
  expires_at timestamptz not null
);
