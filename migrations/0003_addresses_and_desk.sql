-- How a project makes amounts unique: by a tail, or by one address for each invoice of the same amount. Changing it
-- needs addresses of the new policy; an address keeps its own for life.
alter table projects add column policy text not null default 'tail' check (policy in ('tail', 'exact'));

-- Watch-only keys of the operator's accounts (m/44'/195'/account'), from which addresses are derived.
create table account_keys (
  id uuid primary key,
  project_id uuid not null,
  network text not null,
  xpub text not null check (char_length(xpub) = 111 and xpub like 'xpub%'),
  created_at timestamptz not null default now(),
  foreign key (project_id, network) references projects (id, network),
  unique (network, xpub),
  unique (project_id, network, id)
);

alter table addresses
  add column account_key_id uuid,
  add column derivation_index integer check (derivation_index >= 0),
  add constraint addresses_derived check ((account_key_id is null) = (derivation_index is null)),
  add foreign key (project_id, network, account_key_id) references account_keys (project_id, network, id),
  add constraint addresses_derived_once unique (account_key_id, derivation_index);

-- Only whether an address is in use may change: everything else is what its invoices rely on.
create function keep_addresses() returns trigger language plpgsql as $$
begin
  raise exception 'what address % is never changes: only retired_at does', old.address using errcode = 'check_violation';
end $$;
create trigger addresses_are_for_life before update on addresses for each row
  when ((old.id, old.project_id, old.network, old.account, old.address, old.policy, old.position, old.created_at,
      old.account_key_id, old.derivation_index)
    is distinct from (new.id, new.project_id, new.network, new.account, new.address, new.policy, new.position, new.created_at,
      new.account_key_id, new.derivation_index))
  execute function keep_addresses();
create trigger addresses_are_kept before delete or truncate on addresses for each statement
  execute function keep_ledger_rows();

-- Up to which position the addresses in use of a project have nothing free in a range of amounts, so that creation does not
-- look at each of them again. Reservations are permanent, so it stays true until an address comes back into use. Then the
-- epoch of the project rises, and hints of an earlier one count for nothing, also one that is being written at this moment.
alter table projects add column allocation_epoch integer not null default 0;
create table allocation_hints (
  project_id uuid not null references projects (id),
  policy text not null check (policy in ('tail', 'exact')),
  from_micro bigint not null check (from_micro > 0),
  below_micro bigint not null check (below_micro > from_micro),
  position integer not null check (position > 0),
  epoch integer not null,
  primary key (project_id, policy, from_micro, below_micro)
);

create function forget_allocation_hints() returns trigger language plpgsql as $$
begin
  update projects set allocation_epoch = allocation_epoch + 1 where id in (
    select n.project_id from new_rows n join old_rows o on o.id = n.id
    where o.retired_at is not null and n.retired_at is null);
  return null;
end $$;
create trigger addresses_back_in_use after update on addresses
  referencing old table as old_rows new table as new_rows for each statement
  execute function forget_allocation_hints();

-- Amounts for which an invoice was refused, because nothing was free: what the capacity is measured for, beside what is in use.
create table refused_amounts (
  project_id uuid not null references projects (id),
  requested_micro bigint not null check (requested_micro > 0),
  refused_at timestamptz not null,
  primary key (project_id, requested_micro)
);
create index refused_amounts_latest on refused_amounts (project_id, refused_at);

-- Which key asked for an invoice; unknown for those of before.
alter table invoices add column api_key_id uuid;

-- The same rule as before, at a seventieth of its cost: a bounded repetition made each insert run a large automaton. The rows
-- that there are have passed it.
alter table invoices
  drop constraint invoices_idempotency_key_check,
  add constraint invoices_idempotency_key_check
    check (idempotency_key ~ '^[!-~]+$' and char_length(idempotency_key) <= 255) not valid;

-- The desk and the export read the transfers of a project in the order in which they were recorded.
create index transfers_project on transfers (project_id, id);
create index transfers_unsettled on transfers (project_id, id) where kind <> 'matched';
create index transfers_sender on transfers (project_id, from_address);
create index transfers_duplicates on transfers (project_id, invoice_id, id) where kind = 'duplicate';
-- Address poisoning imitates what wallets show of an address: the first 4 and the last 4 characters.
create index addresses_ends on addresses (project_id, left(address, 4), right(address, 4));
create index transfers_sender_ends on transfers (project_id, left(from_address, 4), right(from_address, 4), block_time);
create index outgoing_transfers_recipient_ends
  on outgoing_transfers (project_id, left(to_address, 4), right(to_address, 4), block_time);
create index outgoing_transfers_recipient on outgoing_transfers (project_id, to_address);
create index outgoing_transfers_project on outgoing_transfers (project_id, block_number, tx_id, log_index);
alter table transfers add unique (id, project_id);

-- What an operator did about a transfer that paid nothing. Append-only: the newest row is in force. It never touches an invoice;
-- invoice_id only notes what the money was for.
create table transfer_resolutions (
  id bigint generated always as identity primary key,
  project_id uuid not null,
  transfer_id uuid not null,
  resolution text not null check (resolution in ('refunded', 'credited-outside', 'own-deposit', 'ignored')),
  note text not null check (char_length(note) <= 2000),
  invoice_id uuid,
  resolved_by text not null check (char_length(resolved_by) between 1 and 200),
  resolved_at timestamptz not null,
  foreign key (transfer_id, project_id) references transfers (id, project_id),
  foreign key (project_id, invoice_id) references invoices (project_id, id)
);
create index transfer_resolutions_transfer on transfer_resolutions (transfer_id, id desc);
create index transfer_resolutions_invoice on transfer_resolutions (invoice_id) where invoice_id is not null;
create trigger transfer_resolutions_are_kept before update or delete or truncate on transfer_resolutions
  for each statement execute function keep_ledger_rows();

create function refuse_resolved_match() returns trigger language plpgsql as $$
begin
  if exists (select from transfers where id = new.transfer_id and kind = 'matched') then
    raise exception 'transfer % paid its invoice: there is nothing to resolve', new.transfer_id
      using errcode = 'check_violation';
  end if;
  return new;
end $$;
create trigger transfer_resolutions_are_of_unmatched before insert on transfer_resolutions for each row
  execute function refuse_resolved_match();

-- What operators did to addresses and projects. subject is an address (T…) or an id (prj_…).
create table operator_actions (
  id bigint generated always as identity primary key,
  project_id uuid not null references projects (id),
  action text not null check (action in ('address.added', 'address.derived', 'address.retired', 'address.activated', 'project.changed')),
  subject text not null check (char_length(subject) between 1 and 200),
  detail jsonb not null check (jsonb_typeof(detail) = 'object'),
  acted_by text not null check (char_length(acted_by) between 1 and 200),
  acted_at timestamptz not null
);
create index operator_actions_subject on operator_actions (subject, id);
create trigger operator_actions_are_kept before update or delete or truncate on operator_actions for each statement
  execute function keep_ledger_rows();

-- What became of each attempt to deliver an event. status is the HTTP status, null where none came.
create table delivery_attempts (
  event_id uuid not null,
  endpoint_id uuid not null,
  attempt integer not null check (attempt > 0),
  attempted_at timestamptz not null,
  status integer,
  error text,
  primary key (event_id, endpoint_id, attempt),
  foreign key (event_id, endpoint_id) references deliveries (event_id, endpoint_id)
);
