-- A shop says with each order where it is told of the payment, so what one order's URL answers says nothing about the others: an adapter
-- keeps no health, and nobody but a person switches its callbacks off.
update webhook_endpoints set failing_since = null, consecutive_failures = 0, open_until = null where adapter is not null;
alter table webhook_endpoints add constraint webhook_endpoints_adapter_health check (
  adapter is null or (failing_since is null and consecutive_failures = 0 and open_until is null));
