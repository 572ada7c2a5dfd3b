-- BEpusdt is a kind of adapter and a dialect of its own. The checks only grow, so every row satisfies them.
alter table webhook_endpoints drop constraint webhook_endpoints_adapter_check;
alter table webhook_endpoints add constraint webhook_endpoints_adapter_check check (adapter in ('epusdt', 'bepusdt', 'epay'));
alter table adapter_orders drop constraint adapter_orders_dialect_check;
alter table adapter_orders add constraint adapter_orders_dialect_check check (dialect in ('epusdt', 'bepusdt', 'gmpay', 'epay')) not valid;
-- step
alter table adapter_orders validate constraint adapter_orders_dialect_check;
