-- What a key may do; without it, what every key could do before.
alter table api_keys add column scopes text[]
  check (cardinality(scopes) > 0 and scopes <@ array['create', 'read', 'events', 'webhooks']);

-- A key with the scope webhooks changes endpoints, and the log says that it did.
alter table operator_actions drop constraint operator_actions_actor_kind_check;
alter table operator_actions add constraint operator_actions_actor_kind_check
  check (actor_kind in ('cli', 'console', 'admin', 'service', 'key')) not valid;
