-- Additions of addresses that wait for another owner or for their time. A row never changes but to end. first_index: of the ledger when it
-- was proposed; a restore raises it. indexes, xpub and what follows are of derived ones alone.
create table address_changes (
  id uuid primary key,
  project_id uuid not null,
  network text not null,
  kind text not null check (kind in ('add', 'derive')),
  policy text not null check (policy in ('tail', 'exact')),
  addresses text[] not null check (cardinality(addresses) between 1 and 500),
  first_index integer not null check (first_index >= 0),
  indexes bigint[],
  xpub text,
  key_first_index integer check (key_first_index >= 0),
  auto_derive_limit integer check (auto_derive_limit >= 0),
  actor_kind text not null check (actor_kind in ('console', 'admin')),
  actor_id uuid not null,
  acted_by text not null check (char_length(acted_by) between 1 and 200),
  origin text check (char_length(origin) between 1 and 200),
  proposed_at timestamptz not null,
  due_at timestamptz not null check (due_at >= proposed_at + interval '24 hours'),
  state text not null default 'waiting' check (state in ('waiting', 'applied', 'withdrawn', 'failed')),
  ended_at timestamptz,
  ended_by text check (char_length(ended_by) between 1 and 200),
  reason text check (char_length(reason) between 1 and 1000),
  foreign key (project_id, network) references projects (id, network),
  constraint address_changes_derived check (
    case kind
      when 'add' then num_nonnulls(indexes, xpub, key_first_index, auto_derive_limit) = 0
      else num_nulls(indexes, xpub, key_first_index, auto_derive_limit) = 0 and cardinality(indexes) = cardinality(addresses)
    end),
  constraint address_changes_end check ((state = 'waiting') = (ended_at is null) and (ended_at is null) = (ended_by is null)),
  constraint address_changes_reason check ((state = 'failed') = (reason is not null))
);
create index address_changes_project on address_changes (project_id, id);
create index address_changes_waiting on address_changes (network, due_at) where state = 'waiting';

create trigger address_changes_keep_what_they_are before update on address_changes for each row
  execute function keep_columns('state', 'ended_at', 'ended_by', 'reason');
create trigger address_changes_stay_ended before update on address_changes for each row
  when (old.state <> 'waiting') execute function keep_columns();
create trigger address_changes_are_kept before delete or truncate on address_changes for each statement
  execute function keep_ledger_rows();
