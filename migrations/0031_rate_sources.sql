-- Where the rate of an adapter is read, if it is not fixed: a URL, the places of the number and of its time in the answer, bounds, and how old
-- it may be, as JSON. What was read there last, and the time that it is of, stand beside it with a seal of their own, for they change by
-- themselves. None stands here that is outside the bounds.
alter table webhook_endpoints
  add column rate_source text check (char_length(rate_source) between 2 and 8192),
  add column read_micro bigint check (read_micro > 0),
  add column read_at timestamptz check (read_at between '2020-01-01Z' and '9999-01-01Z'),
  add column read_mac bytea check (octet_length(read_mac) = 24),
  add constraint webhook_endpoints_rate_source check (
    num_nonnulls(rate_source, read_micro, read_at) in (0, 3) and (rate_source is null or coalesce(adapter is not null and read_micro between
      (rate_source::jsonb ->> 'min')::numeric * 1000000 and (rate_source::jsonb ->> 'max')::numeric * 1000000, false)));
drop trigger webhook_endpoints_keep_what_they_are on webhook_endpoints;
create trigger webhook_endpoints_keep_what_they_are before update on webhook_endpoints for each row
  execute function keep_columns('url', 'description', 'event_types', 'failing_since', 'consecutive_failures', 'open_until',
    'disabled_at', 'disabled_reason', 'rate_micro', 'rate_source', 'read_micro', 'read_at', 'read_mac', 'mac');
