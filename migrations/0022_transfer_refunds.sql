-- By which transfer that left one of our addresses an operator sent a transfer back. Append-only: one refund of a transfer, and one transfer
-- by a refund. The first record of a log stands for the log, whatever corrects it later.
create table transfer_refunds (
  transfer_id uuid primary key,
  project_id uuid not null,
  network text not null,
  tx_id bytea not null,
  log_index integer not null,
  refunded_at timestamptz not null,
  mac bytea check (octet_length(mac) = 24),
  unique (network, tx_id, log_index),
  foreign key (transfer_id, project_id) references transfers (id, project_id),
  foreign key (network, tx_id, log_index) references outgoing_transfers (network, tx_id, log_index)
);
create trigger transfer_refunds_are_kept before delete or truncate on transfer_refunds for each statement execute function keep_ledger_rows();
create trigger transfer_refunds_keep_what_they_are before update on transfer_refunds for each row execute function keep_columns('mac');
create trigger transfer_refunds_are_of_unmatched before insert on transfer_refunds for each row execute function refuse_resolved_match();
