-- What operators did is sealed as other rows are, with its number, so that no entry can be made up, changed, told twice or given another
-- place by who does not hold the master key. Null: the entry is older than its seal; "quittance ledger seal" seals those. The hash does
-- not cover the seal, which a rotation of the master key makes anew.
alter table operator_actions add column mac bytea check (octet_length(mac) = 24);

drop trigger if exists operator_actions_are_kept on operator_actions;
create trigger operator_actions_are_kept before delete or truncate on operator_actions for each statement
  execute function keep_ledger_rows();
create trigger operator_actions_keep_what_they_are before update on operator_actions for each row execute function keep_columns('mac');
