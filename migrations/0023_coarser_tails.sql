-- Tails of four and three decimals. A limit must hold words: 100 units of the last decimal.
alter table projects
  drop constraint projects_policy_check,
  add constraint projects_policy_check check (policy in ('tail', 'tail-4', 'tail-3', 'exact')),
  add constraint projects_surcharge_holds_words check
    (max_surcharge_micro >= case policy when 'tail-4' then 10000 when 'tail-3' then 100000 else 100 end);
alter table addresses
  drop constraint addresses_policy_check,
  add constraint addresses_policy_check check (policy in ('tail', 'tail-4', 'tail-3', 'exact'));
alter table address_changes
  drop constraint address_changes_policy_check,
  add constraint address_changes_policy_check check (policy in ('tail', 'tail-4', 'tail-3', 'exact'));
alter table allocation_hints
  drop constraint allocation_hints_policy_check,
  add constraint allocation_hints_policy_check check (policy in ('tail', 'tail-4', 'tail-3', 'exact'));
