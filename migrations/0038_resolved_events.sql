-- A shop is told of each decision about a transfer by an event that is written with it. Decisions of before this migration, and those that
-- a process of a former release makes while an upgrade is under way, have none.
alter table transfer_resolutions
  add column event_id uuid unique references events (id),
  add column is_untold boolean not null default true;
alter table transfer_resolutions
  add constraint transfer_resolutions_are_told check (is_untold = (event_id is null));

-- A decision can close the page of an invoice, and the next one can open it again: open pages of every invoice that a decision about
-- the transfer has named look again.
create or replace function tell_pages_of_resolution() returns trigger language plpgsql as $$
begin
  perform pg_notify('quittance_invoices', named.invoice_id::text) from (
    select distinct invoice_id from transfer_resolutions where transfer_id = new.transfer_id and invoice_id is not null) named;
  return null;
end $$;
create trigger transfer_resolutions_tell_pages after insert on transfer_resolutions for each row
  execute function tell_pages_of_resolution();
