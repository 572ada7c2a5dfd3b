-- An archived project takes no new invoices; those that there are go on. It can be put back.
alter table projects add column archived_at timestamptz;
drop trigger projects_keep_what_they_are on projects;
create trigger projects_keep_what_they_are before update on projects for each row
  execute function keep_columns('name', 'policy', 'max_surcharge_micro', 'invoice_lifetime_ms', 'allocation_epoch',
    'support_contact', 'return_url', 'accent', 'logo_id', 'max_unpaid', 'max_unpaid_per_minute', 'archived_at', 'mac');
