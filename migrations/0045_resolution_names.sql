-- Resolutions have the names that people see. Rows written before keep the name that is in their seal, and are read as the new one.
alter table transfer_resolutions drop constraint transfer_resolutions_resolution_check;
alter table transfer_resolutions add constraint transfer_resolutions_resolution_names
  check (resolution in ('refunded', 'fulfilled-manually', 'own-deposit', 'kept', 'credited-outside', 'ignored'));
