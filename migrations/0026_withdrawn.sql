-- A shop no longer asks for a payment: its page shows no way to pay, and everything else goes on, so the status says nothing of it.
alter table invoices
  add column withdrawn_at timestamptz check (isfinite(withdrawn_at)),
  add column withdrawn_mac bytea check (octet_length(withdrawn_mac) = 24);

do $$
declare
  kept text[] := array['status', 'event_count', 'paid_transfer_id', 'expires_at', 'mac', 'paid_mac', 'withdrawn_at', 'withdrawn_mac'];
begin
  drop trigger invoices_keep_what_they_are on invoices;
  execute format('create trigger invoices_keep_what_they_are before update on invoices for each row when (%s) execute function keep_columns(%s)',
    (select string_agg(format('old.%1$I is distinct from new.%1$I', attname), ' or ' order by attnum) from pg_attribute
      where attrelid = 'invoices'::regclass and attnum > 0 and not attisdropped and attname <> all(kept)),
    (select string_agg(quote_literal(a), ', ') from unnest(kept) a));
end $$;
create trigger invoices_stay_withdrawn before update on invoices for each row
  when (old.withdrawn_at is not null and new.withdrawn_at is distinct from old.withdrawn_at)
  execute function refuse_way_back('withdrawn_at');
-- Pages that are open show it at once.
create trigger invoices_tell_their_withdrawal after update of withdrawn_at on invoices for each row
  when (old.withdrawn_at is distinct from new.withdrawn_at)
  execute function tell_invoice_status();
