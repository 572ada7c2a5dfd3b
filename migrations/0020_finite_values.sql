-- A time that is infinite, and an amount that is no number, are values of PostgreSQL and none of ours. Whoever wrote one made each statement
-- fail that reads it. Not valid: there are none, and nothing waits for that to be looked up.
alter table operator_actions add constraint operator_actions_finite check (isfinite(acted_at)) not valid;
alter table api_keys add constraint api_keys_finite check (isfinite(expires_at)) not valid;
alter table admin_keys add constraint admin_keys_finite check (isfinite(expires_at)) not valid;
alter table projects add constraint projects_finite check (isfinite(archived_at)) not valid;
alter table notify_channels add constraint notify_channels_finite check (isfinite(created_at) and isfinite(removed_at) and isfinite(due_at)) not valid;
alter table producer_sets add constraint producer_sets_finite check (isfinite(chain_time)) not valid;
alter table transfers add constraint transfers_finite check (isfinite(block_time) and amount_micro <> 'NaN') not valid;
alter table outgoing_transfers add constraint outgoing_transfers_finite check (isfinite(block_time) and amount_micro <> 'NaN') not valid;
alter table balance_checks add constraint balance_checks_finite
  check (opening_micro <> 'NaN' and balance_micro <> 'NaN' and expected_micro <> 'NaN') not valid;
