-- Between which the rate of an adapter stays, in millionths, whoever sets it and however often. Rates that are there get 0.7 to 1.4 times of
-- themselves, or the bounds of their source.
alter table webhook_endpoints add column rate_min_micro bigint check (rate_min_micro > 0), add column rate_max_micro bigint;
drop trigger webhook_endpoints_keep_what_they_are on webhook_endpoints;
create trigger webhook_endpoints_keep_what_they_are before update on webhook_endpoints for each row
  execute function keep_columns('url', 'description', 'event_types', 'failing_since', 'consecutive_failures', 'open_until',
    'disabled_at', 'disabled_reason', 'rate_micro', 'rate_source', 'rate_min_micro', 'rate_max_micro', 'read_micro', 'read_at', 'read_mac', 'mac');
update webhook_endpoints set
  rate_min_micro = greatest(1, least(rate_micro, coalesce((rate_source::jsonb ->> 'min')::numeric * 1000000, rate_micro * 7 / 10))),
  rate_max_micro = greatest(rate_micro, coalesce((rate_source::jsonb ->> 'max')::numeric * 1000000, (rate_micro::numeric * 14 + 9) / 10))
where adapter is not null;
alter table webhook_endpoints add constraint webhook_endpoints_rate_bounds check (
  num_nonnulls(adapter, rate_min_micro, rate_max_micro) in (0, 3)
  and (adapter is null or rate_micro >= rate_min_micro and rate_micro <= rate_max_micro
    and coalesce(read_micro between rate_min_micro and rate_max_micro, true)));
