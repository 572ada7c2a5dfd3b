-- The notifier looks every few seconds for owners that were made lately; the audit log has few entries of these kinds.
create index operator_actions_access on operator_actions (acted_at)
  where action in ('admin-key.created', 'user.invited', 'user.changed', 'user.reset');
