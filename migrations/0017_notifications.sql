-- Where operators are told what happens. What leads there, with its passwords and tokens, is one JSON text, encrypted with the ids of the row and
-- its kind bound to it; shown is what a list says of it. A channel that was removed has lost it. Minutes are of the day in the time zone.
create table notify_channels (
  id uuid primary key,
  kind text not null check (kind in ('email', 'telegram', 'slack', 'discord', 'ntfy', 'webhook')),
  name text not null check (char_length(name) between 1 and 100),
  shown text not null check (char_length(shown) between 1 and 300),
  quiet_from integer check (quiet_from between 0 and 1439),
  quiet_to integer check (quiet_to between 0 and 1439),
  summary_at integer check (summary_at between 0 and 1439),
  time_zone text not null check (char_length(time_zone) between 1 and 100),
  master_key_id text not null check (master_key_id ~ '^[0-9a-f]{16}$'),
  sealed bytea not null check (octet_length(sealed) <= 8192),
  created_at timestamptz not null,
  removed_at timestamptz,
  -- Since when every attempt failed, how many, and when the next one is due.
  failing_since timestamptz,
  failures integer not null default 0 check (failures >= 0),
  due_at timestamptz,
  last_error text check (char_length(last_error) <= 500),
  last_sent_at timestamptz,
  mac bytea check (octet_length(mac) = 24),
  constraint notify_channels_quiet check ((quiet_from is null) = (quiet_to is null) and quiet_from is distinct from quiet_to
    or num_nonnulls(quiet_from, quiet_to) = 0),
  constraint notify_channels_removed check ((removed_at is null) = (octet_length(sealed) > 0))
);
create unique index notify_channels_name on notify_channels (name) where removed_at is null;
create trigger notify_channels_keep_what_they_are before update on notify_channels for each row
  execute function keep_columns('master_key_id', 'sealed', 'removed_at', 'failing_since', 'failures', 'due_at', 'last_error',
    'last_sent_at', 'mac');
create trigger notify_channels_stay_removed before update on notify_channels for each row
  when (old.removed_at is not null and new.removed_at is distinct from old.removed_at)
  execute function refuse_way_back('removed_at');
create trigger notify_channels_are_kept before delete or truncate on notify_channels for each statement execute function keep_ledger_rows();

-- What each channel is told: one row for each thing that begins and one for its end, whoever makes it and however often.
create table notifications (
  id uuid primary key,
  channel_id uuid not null references notify_channels (id),
  -- alarm:UUID, transfer:UUID, summary:2026-09-01
  about text not null check (char_length(about) between 1 and 100),
  phase text not null check (phase in ('raised', 'over')),
  is_urgent boolean not null,
  title text not null check (char_length(title) between 1 and 200),
  body text not null check (char_length(body) <= 3000),
  created_at timestamptz not null,
  -- given-up: it was too old when the channel took messages again.
  status text not null default 'waiting' check (status in ('waiting', 'sent', 'given-up')),
  -- While it is under way nobody else sends it.
  claimed_until timestamptz,
  ended_at timestamptz,
  mac bytea check (octet_length(mac) = 24),
  constraint notifications_once unique (channel_id, about, phase),
  constraint notifications_end check ((status = 'waiting') = (ended_at is null))
);
create index notifications_waiting on notifications (channel_id, id) where status = 'waiting';
create index notifications_ended on notifications (ended_at) where status <> 'waiting';
create trigger notifications_keep_what_they_are before update on notifications for each row
  execute function keep_columns('status', 'claimed_until', 'ended_at', 'mac');

-- What ended lately is looked for every few seconds.
create index alarms_over on alarms (resolved_at) where resolved_at is not null;
create index transfer_resolutions_time on transfer_resolutions (resolved_at);

-- What begins stays as long as its alarm is open, or it would be told again.
create function forget_old_notifications(before timestamptz) returns void language sql security definer
begin atomic
  delete from notifications where id in (
    select n.id from notifications n
    where n.status <> 'waiting' and n.ended_at < before
      and not exists (select from alarms a where 'alarm:' || a.id = n.about and a.resolved_at is null)
    order by n.ended_at limit 1000);
end;
revoke execute on function forget_old_notifications from public;
