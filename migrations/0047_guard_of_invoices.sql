-- Keeps every column of invoices as it is, except those named. A migration that adds a column which may change calls this with all of them.
-- The trigger has a condition, so an update that changes no kept column doesn't call a function.
create or replace function guard_invoices(variadic changing text[]) returns void language plpgsql as $$
begin
  drop trigger if exists invoices_keep_what_they_are on invoices;
  execute format('create trigger invoices_keep_what_they_are before update on invoices for each row when (%s) execute function keep_columns(%s)',
    (select string_agg(format('old.%1$I is distinct from new.%1$I', attname), ' or ' order by attnum) from pg_attribute
      where attrelid = 'invoices'::regclass and attnum > 0 and not attisdropped and attname <> all(changing)),
    (select string_agg(quote_literal(name), ', ') from unnest(changing) name));
end $$;
revoke all on function guard_invoices(text[]) from public;

select guard_invoices('status', 'event_count', 'paid_transfer_id', 'expires_at', 'mac', 'paid_mac', 'withdrawn_at', 'withdrawn_mac');
