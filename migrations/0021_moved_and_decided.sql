-- What is told to an endpoint is an event of its own project. Not validated: a row that somebody put there before must not keep the schema from
-- being renewed, and the service sends none of those.
create unique index events_of_their_project on events (project_id, id);
alter table deliveries
  drop constraint deliveries_event_id_fkey,
  add constraint deliveries_tell_their_own_project foreign key (project_id, event_id) references events (project_id, id) not valid;

-- The seal of a status covers how many changes there were, so that a seal of before is of no use.
create trigger invoices_go_forward before update on invoices for each row
  when (new.event_count < old.event_count) execute function refuse_way_back('event_count');

-- What operators decided is sealed as other rows are. Null: it is older than its seal; "quittance ledger seal" seals those.
alter table transfer_annulments add column mac bytea check (octet_length(mac) = 24);
alter table transfer_resolutions add column mac bytea check (octet_length(mac) = 24);
alter table passed_blocks add column mac bytea check (octet_length(mac) = 24);
drop trigger transfer_annulments_are_kept on transfer_annulments;
create trigger transfer_annulments_are_kept before delete or truncate on transfer_annulments for each statement
  execute function keep_ledger_rows();
create trigger transfer_annulments_keep_what_they_are before update on transfer_annulments for each row
  execute function keep_columns('mac');
drop trigger transfer_resolutions_are_kept on transfer_resolutions;
create trigger transfer_resolutions_are_kept before delete or truncate on transfer_resolutions for each statement
  execute function keep_ledger_rows();
create trigger transfer_resolutions_keep_what_they_are before update on transfer_resolutions for each row
  execute function keep_columns('mac');
drop trigger passed_blocks_are_kept on passed_blocks;
create trigger passed_blocks_are_kept before delete or truncate on passed_blocks for each statement
  execute function keep_ledger_rows();
create trigger passed_blocks_keep_what_they_are before update on passed_blocks for each row
  execute function keep_columns('mac');
