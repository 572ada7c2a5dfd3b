-- A payer who looks up a transfer of another amount than his invoice asks for has found where his money is. Each such look-up leaves a
-- request; the watcher judges it once the transfer is recorded.
create table claim_requests (
  project_id uuid not null,
  invoice_id uuid not null,
  network text not null,
  tx_id bytea not null check (octet_length(tx_id) = 32),
  requested_at timestamptz not null default now(),
  primary key (network, project_id, invoice_id, tx_id),
  foreign key (project_id, invoice_id) references invoices (project_id, id)
);

-- Nothing is lost with a request: a payer can look again.
create function forget_claim_requests(of_network text, invoices uuid[], tx_ids text[]) returns void
  language sql security definer
begin atomic
  delete from claim_requests r using unnest(invoices, tx_ids) as judged (invoice_id, tx_id)
  where r.network = of_network and r.invoice_id = judged.invoice_id and r.tx_id = decode(judged.tx_id, 'hex');
end;
revoke execute on function forget_claim_requests from public;

-- The payer of an invoice says that an unmatched transfer is his. Append-only. It credits nothing: an operator decides. The event tells the shop.
create table transfer_claims (
  transfer_id uuid not null,
  project_id uuid not null,
  invoice_id uuid not null,
  event_id uuid not null unique references events (id),
  claimed_at timestamptz not null,
  mac bytea check (octet_length(mac) = 24),
  primary key (transfer_id, invoice_id),
  foreign key (transfer_id, project_id) references transfers (id, project_id),
  foreign key (project_id, invoice_id) references invoices (project_id, id)
);
create index transfer_claims_invoice on transfer_claims (project_id, invoice_id);
create trigger transfer_claims_are_kept before delete or truncate on transfer_claims for each statement execute function keep_ledger_rows();
create trigger transfer_claims_keep_what_they_are before update on transfer_claims for each row execute function keep_columns('mac');
create trigger transfer_claims_are_of_unmatched before insert on transfer_claims for each row execute function refuse_resolved_match();

-- Open pages of every invoice that a decision about the transfer has named, or whose payer claims it, look again.
create or replace function tell_pages_of_resolution() returns trigger language plpgsql as $$
begin
  perform pg_notify('quittance_invoices', named.invoice_id::text) from (
    select invoice_id from transfer_resolutions where transfer_id = new.transfer_id and invoice_id is not null
    union select invoice_id from transfer_claims where transfer_id = new.transfer_id) named;
  return null;
end $$;
create trigger transfer_claims_tell_pages after insert on transfer_claims for each row execute function tell_pages_of_resolution();
