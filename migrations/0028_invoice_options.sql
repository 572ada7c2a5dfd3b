-- What a shop may say of an invoice beside what it must: the way back, how long it waits, what it is for, and the shop's own words about it. JSON
-- as it was sealed; null where the shop said nothing.
alter table invoices
  add column options text check (char_length(options) between 2 and 8192),
  add constraint invoices_options_are_json check (jsonb_typeof(options::jsonb) = 'object');

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
