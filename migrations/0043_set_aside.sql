-- What the chain has and the ledger cannot record yet, because a row that it concerns fails its check: everything else goes on, and this is
-- recorded once the row is repaired. id: "<network> transfer <id> <log>", or "<network> invoice <id>" for a status that is to be looked at
-- again. content: the block with that transfer alone, or the project of that invoice, as JSON. What was recorded is forgotten, and
-- what is to no address in use: of those out of use, only the ones that nobody signed leave a transfer without a record.
create table set_aside (
  id text primary key check (char_length(id) between 1 and 200),
  network text not null,
  content text not null check (char_length(content) between 2 and 20000),
  account bytea check (octet_length(account) = 20),
  amount_micro numeric check (amount_micro between 0 and 1e80),
  reason text not null check (char_length(reason) <= 2000),
  set_aside_at timestamptz not null default now(),
  tries integer not null default 0 check (tries between 0 and 1000000),
  due_at timestamptz not null default now() check (due_at between '1970-01-01Z' and '2200-01-01Z'),
  mac bytea check (octet_length(mac) = 24),
  check ((account is null) = (amount_micro is null))
);
create index set_aside_amounts on set_aside (network, account, amount_micro);
create trigger set_aside_keeps_what_it_is before update on set_aside for each row execute function keep_columns('reason', 'tries', 'due_at', 'mac');

create or replace function forget_set_aside(of_id text) returns void
  language sql security definer
begin atomic
  delete from set_aside s
  where s.id = of_id and (
    s.account is null
    or exists (select from transfers t where t.network = s.network and t.tx_id = decode(split_part(s.id, ' ', 3), 'hex')
      and t.log_index = split_part(s.id, ' ', 4)::int4)
    or not exists (select from addresses a where a.network = s.network and a.account = s.account and a.retired_at is null));
end;
revoke execute on function forget_set_aside from public;
