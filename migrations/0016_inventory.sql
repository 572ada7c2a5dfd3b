-- What there is, sealed: a MAC in a row says nothing about rows that are gone, or that are there again as they once were. A page of the
-- subject invoices, transfers or events lists the ids of up to 1,000 rows in their order, and the last one grows. The one page of the subject
-- settings says how each project, key, endpoint and address stood, and which entry of the audit log was the last one then.
create table inventory_pages (
  id uuid primary key,
  network text not null,
  subject text not null check (subject in ('invoices', 'transfers', 'events', 'settings')),
  number bigint not null check (number > 0),
  content bytea not null,
  mac bytea check (octet_length(mac) = 24),
  unique (network, subject, number)
);
create trigger inventory_pages_are_kept before delete or truncate on inventory_pages for each statement execute function keep_ledger_rows();
create trigger inventory_pages_keep_what_they_are before update on inventory_pages for each row
  execute function keep_columns('content', 'mac');

-- An alarm says what an operator should do, so nobody else may make one up.
alter table alarms add column mac bytea check (octet_length(mac) = 24);
drop trigger if exists alarms_keep_what_they_are on alarms;
create trigger alarms_keep_what_they_are before update on alarms for each row
  execute function keep_columns('detail', 'seen_at', 'seen_count', 'resolved_at', 'mac');
