-- What operators decide where nodes cannot or do not tell the truth: a block that passes unproven, and transfers that were made up.

-- Append-only: the newest row of a height is in force.
create table passed_blocks (
  id bigint generated always as identity primary key,
  network text not null check (network in ('mainnet', 'nile', 'devnet')),
  number bigint not null check (number > 0),
  block_id bytea not null check (octet_length(block_id) = 32),
  -- Over all that was shown of it: another word of the same block does not pass.
  digest bytea not null check (octet_length(digest) = 32),
  passed_at timestamptz not null,
  passed_by text not null check (char_length(passed_by) between 1 and 200),
  reason text not null check (char_length(reason) between 1 and 2000),
  constraint passed_blocks_once unique (network, number, digest)
);
create trigger passed_blocks_are_kept before update or delete or truncate on passed_blocks for each statement
  execute function keep_ledger_rows();

-- Once what was recorded of a log has been taken back, the truth is recorded beside it: 0 is the first record of a log, and each
-- further one follows an annulled one.
alter table transfers
  add column correction integer not null default 0 check (correction >= 0),
  drop constraint transfers_network_tx_id_log_index_key,
  add constraint transfers_once unique (network, tx_id, log_index, correction);

-- The former release names the primary key of outgoing_transfers, so further records of a log stand in a table of their own, which
-- every query of outgoing_transfers reads too.
alter table outgoing_transfers
  add column correction integer not null default 0,
  add constraint outgoing_transfers_first check (correction = 0) no inherit;
create table outgoing_corrections (
  constraint outgoing_corrections_further check (correction > 0),
  primary key (network, tx_id, log_index, correction),
  foreign key (project_id, network, address_id) references addresses (project_id, network, id)
) inherits (outgoing_transfers);
create index outgoing_corrections_address on outgoing_corrections (address_id, block_number);
create index outgoing_corrections_project on outgoing_corrections (project_id, block_number, tx_id, log_index);
create trigger outgoing_corrections_are_kept before update or delete or truncate on outgoing_corrections for each statement
  execute function keep_ledger_rows();

-- A recorded transfer that the chain denies. It stays where it is and counts no more. denied_by is the block of the chain at the
-- height where it was recorded; invoice_id the invoice that it had made PAID, which the operator has named.
create table transfer_annulments (
  transfer_id uuid primary key,
  project_id uuid not null,
  invoice_id uuid,
  denied_by bytea not null check (octet_length(denied_by) = 32),
  annulled_at timestamptz not null,
  annulled_by text not null check (char_length(annulled_by) between 1 and 200),
  reason text not null check (char_length(reason) between 1 and 2000),
  foreign key (transfer_id, project_id) references transfers (id, project_id),
  foreign key (transfer_id, project_id, invoice_id) references transfers (id, project_id, invoice_id)
);
create trigger transfer_annulments_are_kept before update or delete or truncate on transfer_annulments for each statement
  execute function keep_ledger_rows();

create table outgoing_annulments (
  network text not null,
  tx_id bytea not null,
  log_index integer not null,
  correction integer not null,
  denied_by bytea not null check (octet_length(denied_by) = 32),
  annulled_at timestamptz not null,
  annulled_by text not null check (char_length(annulled_by) between 1 and 200),
  reason text not null check (char_length(reason) between 1 and 2000),
  primary key (network, tx_id, log_index, correction)
);
create trigger outgoing_annulments_are_kept before update or delete or truncate on outgoing_annulments for each statement
  execute function keep_ledger_rows();

-- PAID is never left, but its payment is never taken back unnoticed.
create function name_denied_payment() returns trigger language plpgsql as $$
begin
  if (select case kind when 'matched' then invoice_id end from transfers where id = new.transfer_id)
    is distinct from new.invoice_id then
    raise exception 'transfer % is taken back only with the invoice that it paid', new.transfer_id
      using errcode = 'check_violation';
  end if;
  return new;
end $$;
create trigger transfer_annulments_name_what_was_paid before insert on transfer_annulments for each row
  execute function name_denied_payment();

create function refuse_denied_payment() returns trigger language plpgsql as $$
begin
  if exists (select from transfer_annulments where transfer_id = new.paid_transfer_id) then
    raise exception 'transfer % was taken back and pays nothing', new.paid_transfer_id using errcode = 'check_violation';
  end if;
  return new;
end $$;
create trigger invoices_are_paid_by_what_stands before update on invoices for each row
  when (old.status <> 'PAID' and new.status = 'PAID') execute function refuse_denied_payment();

-- Checked at the end of a transaction: a backup holds transfers before their annulments.
create function follow_annulled() returns trigger language plpgsql as $$
begin
  if tg_table_name = 'transfers' then
    perform from transfers t join transfer_annulments n on n.transfer_id = t.id
    where t.network = new.network and t.tx_id = new.tx_id and t.log_index = new.log_index and t.correction = new.correction - 1;
  else
    perform from outgoing_annulments n
    where n.network = new.network and n.tx_id = new.tx_id and n.log_index = new.log_index and n.correction = new.correction - 1;
  end if;
  if not found then
    raise exception 'log % of transaction % is recorded already, and was not taken back', new.log_index, new.tx_id
      using errcode = 'unique_violation';
  end if;
  return null;
end $$;
create constraint trigger transfers_follow_annulled_ones after insert on transfers deferrable initially deferred
  for each row when (new.correction > 0) execute function follow_annulled();
create constraint trigger outgoing_corrections_follow_annulled_ones after insert on outgoing_corrections
  deferrable initially deferred for each row execute function follow_annulled();

-- What concerns the chain belongs to no project.
alter table operator_actions
  alter column project_id drop not null,
  drop constraint operator_actions_action_check,
  add constraint operator_actions_action_check check (action in ('address.added', 'address.derived', 'address.retired',
    'address.activated', 'project.changed', 'deliveries.replayed', 'block.passed', 'chain.repaired')),
  add constraint operator_actions_project check (project_id is not null or action in ('block.passed', 'chain.repaired'));
