-- Events in the order in which they were committed, endpoints that choose what they are told, sealed secrets, and attempts
-- with what came back.

-- The row of a project stays locked from the taking of a position to the commit. So positions are committed in their order and
-- without a gap, and who can read one can read all below it.
create table event_streams (
  project_id uuid primary key references projects (id),
  last_position bigint not null check (last_position > 0)
);

alter table events add column position bigint check (position > 0);
alter table events disable trigger events_are_kept;
update events e set position = ranked.position
from (select id, row_number() over (partition by project_id order by created_at, sequence, id) as position from events) ranked
where ranked.id = e.id;
alter table events enable trigger events_are_kept;
insert into event_streams (project_id, last_position)
  select project_id, max(position) from events group by project_id;
alter table events alter column position set not null;
create unique index events_position on events (project_id, position);

-- For processes of the former release that still run during an upgrade; ours take the positions of a batch at once.
create function take_event_position() returns trigger language plpgsql as $$
begin
  insert into event_streams as s (project_id, last_position) values (new.project_id, 1)
    on conflict (project_id) do update set last_position = s.last_position + 1
    returning last_position into new.position;
  return new;
end $$;
create trigger events_have_a_position before insert on events for each row when (new.position is null)
  execute function take_event_position();

-- event_types null stands for all. open_until: the circuit breaker lets no attempt through before. secret is the plain text
-- of the former release, which the service seals at its start.
alter table webhook_endpoints
  alter column secret drop not null,
  add column description text not null default '' check (char_length(description) <= 200),
  add column event_types text[] check (cardinality(event_types) between 1 and 50),
  add column consecutive_failures integer not null default 0 check (consecutive_failures >= 0),
  add column open_until timestamptz;

-- A secret sealed by AES-256-GCM: nonce (12 bytes), ciphertext, tag (16 bytes). The row's and the endpoint's id are bound to it
-- as additional data, so that a sealed secret is of no use in another place. ends_at null: the current one.
create table webhook_secrets (
  id uuid primary key,
  project_id uuid not null,
  endpoint_id uuid not null,
  master_key_id text not null check (master_key_id ~ '^[0-9a-f]{16}$'),
  sealed bytea not null check (octet_length(sealed) between 52 and 92),
  created_at timestamptz not null,
  ends_at timestamptz,
  foreign key (project_id, endpoint_id) references webhook_endpoints (project_id, id)
);
create unique index webhook_secrets_current on webhook_secrets (endpoint_id) where ends_at is null;
create index webhook_secrets_endpoint on webhook_secrets (endpoint_id, created_at);

-- A replay gives a delivery a new schedule by raising max_attempts.
alter table deliveries add column max_attempts integer not null default 12 check (max_attempts > 0);

-- answer: the first bytes of what the endpoint answered, as text, without secrets.
alter table delivery_attempts
  add column latency_ms integer check (latency_ms >= 0),
  add column answer text check (char_length(answer) <= 8192);

-- Of what is due at the same time the earlier event of an invoice comes first.
drop index deliveries_due;
create index deliveries_due on deliveries (endpoint_id, next_attempt_at, created_at, sequence) where status = 'pending';

-- What operators look for first; rows of events are found by their position, and deliveries by their events.
create index deliveries_dead on deliveries (endpoint_id, event_id) where status = 'dead';

alter table operator_actions
  drop constraint operator_actions_action_check,
  add constraint operator_actions_action_check check (action in ('address.added', 'address.derived', 'address.retired',
    'address.activated', 'project.changed', 'deliveries.replayed'));
