-- How a payment was proven: by whom its block was made, and which nodes showed its log. Rows of before were believed from
-- the one node of their time.
alter table transfers
  add column producer bytea check (octet_length(producer) = 20),
  add column verified text not null default 'single-node' check (verified ~ '^(proven|agreed:[0-9]{1,2}|single-node)$'),
  add column nodes text[] not null default '{}';
alter table transfers alter column verified drop default;
alter table transfers alter column nodes drop default;

-- What left our addresses, so that the books can be balanced with the chain. A transfer between two of our addresses
-- stands here and in transfers.
create table outgoing_transfers (
  network text not null,
  tx_id bytea not null check (octet_length(tx_id) = 32),
  log_index integer not null check (log_index >= 0),
  project_id uuid not null,
  address_id uuid not null,
  block_number bigint not null check (block_number >= 0),
  block_id bytea not null check (octet_length(block_id) = 32),
  block_time timestamptz not null,
  to_address text not null,
  amount_micro numeric(78, 0) not null check (amount_micro > 0),
  verified text not null check (verified ~ '^(proven|agreed:[0-9]{1,2}|single-node)$'),
  nodes text[] not null,
  recorded_at timestamptz not null default now(),
  primary key (network, tx_id, log_index),
  foreign key (project_id, network, address_id) references addresses (project_id, network, id)
);
create index outgoing_transfers_address on outgoing_transfers (address_id, block_number);
create trigger outgoing_transfers_are_kept before update or delete or truncate on outgoing_transfers for each statement
  execute function keep_ledger_rows();

-- The latest comparison of an address with the chain. opening_micro is what it held before the ledger knew it.
-- good_block is the newest height at which opening + in − out above opening_block was the balance on the chain.
create table balance_checks (
  address_id uuid primary key,
  project_id uuid not null,
  network text not null,
  opening_micro numeric(79, 0) not null,
  opening_block bigint not null check (opening_block >= 0),
  good_block bigint not null check (good_block >= opening_block),
  checked_block bigint not null check (checked_block >= good_block),
  balance_micro numeric(78, 0) not null check (balance_micro >= 0),
  expected_micro numeric(79, 0) not null,
  node text not null,
  checked_at timestamptz not null,
  due_at timestamptz not null,
  foreign key (project_id, network, address_id) references addresses (project_id, network, id)
);
create index balance_checks_due on balance_checks (network, due_at);

-- Who may make blocks, as agreeing nodes told, with the key that each signs with. Append-only: the newest row is in force.
create table producer_sets (
  id bigint generated always as identity primary key,
  network text not null,
  adopted_at timestamptz not null default now(),
  chain_time timestamptz not null,
  -- Until when the set before was seen in force.
  replaced_after timestamptz not null,
  reason text not null check (reason in ('first', 'vote', 'key', 'operator')),
  producers jsonb not null check (jsonb_typeof(producers) = 'array'),
  nodes text[] not null
);
create index producer_sets_newest on producer_sets (network, id desc);
create trigger producer_sets_are_kept before update or delete or truncate on producer_sets for each statement
  execute function keep_ledger_rows();

-- When nodes last agreed on the newest set.
create table producer_confirmations (
  network text primary key,
  confirmed_at timestamptz not null
);

-- Block 0, by which a node of another network is recognised, and whether the watcher stopped for good.
alter table chain_cursors
  add column genesis_id bytea check (octet_length(genesis_id) = 32),
  add column halted_at timestamptz,
  add column halt_reason text,
  add constraint chain_cursors_halt check ((halted_at is null) = (halt_reason is null));

-- What the watcher of a network last said about itself and its nodes, for other processes and the operator.
create table chain_status (
  network text primary key,
  updated_at timestamptz not null,
  status jsonb not null check (jsonb_typeof(status) = 'object')
);

-- What an operator must know. One open row for each (network, kind, subject); resolved rows are the history.
create table alarms (
  id uuid primary key,
  network text not null,
  kind text not null,
  subject text not null,
  detail text not null check (char_length(detail) <= 2000),
  raised_at timestamptz not null default now(),
  seen_at timestamptz not null default now(),
  seen_count integer not null default 1 check (seen_count > 0),
  resolved_at timestamptz
);
create unique index alarms_open on alarms (network, kind, subject) where resolved_at is null;
create index alarms_history on alarms (network, raised_at);
