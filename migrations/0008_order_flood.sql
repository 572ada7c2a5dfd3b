-- What bounds a flood of orders: how many unpaid invoices a project takes, and how many addresses an account key yields by itself.

-- Of the last 30 minutes and of the last one; null: no limit. A local network has nobody to flood it.
alter table projects
  add column max_unpaid integer default 600 check (max_unpaid > 0),
  add column max_unpaid_per_minute integer default 120 check (max_unpaid_per_minute > 0);
update projects set max_unpaid = null, max_unpaid_per_minute = null where network = 'devnet';

-- 0 for the keys that there are, and for those of the former release: how far their wallets look is not known.
alter table account_keys
  add column auto_derive_limit integer not null default 0 check (auto_derive_limit >= 0),
  add column auto_derived integer not null default 0 check (auto_derived >= 0);
