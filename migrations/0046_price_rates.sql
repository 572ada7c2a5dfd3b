-- A rate that prices in another currency are converted at, without a shop system behind it. The check only grows, so every row satisfies it.
alter table webhook_endpoints drop constraint webhook_endpoints_adapter_check;
alter table webhook_endpoints add constraint webhook_endpoints_adapter_check check (adapter in ('epusdt', 'bepusdt', 'epay', 'price'));
