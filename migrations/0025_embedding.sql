-- The sites on which a shop shows the payer's page in a frame, as the header of the page names them: at most five origins with a space between.
alter table projects add column embed_origins text
  check (char_length(embed_origins) <= 1000
    and embed_origins ~ '^https?://[a-z0-9.-]+(:[0-9]{1,5})?( https?://[a-z0-9.-]+(:[0-9]{1,5})?){0,4}$');
drop trigger projects_keep_what_they_are on projects;
create trigger projects_keep_what_they_are before update on projects for each row
  execute function keep_columns('name', 'policy', 'max_surcharge_micro', 'invoice_lifetime_ms', 'allocation_epoch', 'support_contact',
    'return_url', 'embed_origins', 'accent', 'logo_id', 'max_unpaid', 'max_unpaid_per_minute', 'archived_at', 'mac');
