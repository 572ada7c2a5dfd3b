-- A shop that speaks another system's API. An endpoint with `adapter` takes its orders, and is told of their payments alone, in that system's
-- form and at the URL that each order named. Its id is that of the API key that creates the invoices, so that a revoked key ends it. Its rate is
-- the price of one USDT in `currency`, in millionths.
alter table webhook_endpoints
  add column adapter text check (adapter in ('epusdt', 'epay')),
  add column currency text check (currency ~ '^[A-Z]{3,5}$'),
  add column rate_micro bigint check (rate_micro > 0),
  add constraint webhook_endpoints_adapter check (num_nonnulls(adapter, currency, rate_micro) in (0, 3));
drop trigger webhook_endpoints_keep_what_they_are on webhook_endpoints;
create trigger webhook_endpoints_keep_what_they_are before update on webhook_endpoints for each row
  execute function keep_columns('url', 'description', 'event_types', 'failing_since', 'consecutive_failures',
    'open_until', 'disabled_at', 'disabled_reason', 'rate_micro', 'mac');

-- What an order of such a shop needs beside its invoice: the dialect, where its payment is told, where the payer goes back to, and what the
-- shop must hear again as it said it. The shop's own id is the invoice's external id.
create table adapter_orders (
  project_id uuid not null,
  invoice_id uuid not null,
  endpoint_id uuid not null,
  dialect text not null check (dialect in ('epusdt', 'gmpay', 'epay')),
  notify_url text not null check (char_length(notify_url) between 1 and 2048),
  return_url text check (char_length(return_url) between 1 and 2048),
  amount text not null check (char_length(amount) between 1 and 20),
  name text check (char_length(name) between 1 and 500),
  type text check (char_length(type) between 1 and 50),
  param text check (char_length(param) between 1 and 500),
  created_at timestamptz not null,
  mac bytea check (octet_length(mac) = 24),
  primary key (project_id, invoice_id),
  foreign key (project_id, invoice_id) references invoices (project_id, id),
  foreign key (project_id, endpoint_id) references webhook_endpoints (project_id, id)
);
create trigger adapter_orders_are_kept before delete or truncate on adapter_orders for each statement execute function keep_ledger_rows();
create trigger adapter_orders_keep_what_they_are before update on adapter_orders for each row execute function keep_columns('mac');
