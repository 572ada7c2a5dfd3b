import type { Truth } from '../truth.ts';
import { SQL_INVARIANTS } from './all.ts';
import { declare } from './from-sql.ts';

/**
 * Installs the schema `witness` in a world's database. In the transaction of each change, its triggers record what the books don't keep:
 * status changes with the examined height at that time, and events as first written. Its other tables contain what `feed` passes on about
 * the chain. Call it when the database has only empty tables.
 */
export async function installWitness(query: Truth['query']): Promise<void> {
  await query(WITNESS + SQL_INVARIANTS.map(declare).join('\n'));
}

const WITNESS = `
create schema witness;

-- What the world tells.
create table witness.blocks (number bigint primary key, id bytea not null, time timestamptz not null);
create table witness.accounts (account bytea primary key, head_number bigint);
create table witness.transfers (
  direction text not null, tx_id bytea not null, log_index int not null, block_number bigint not null, account bytea not null,
  amount numeric not null, payable bigint generated always as (case when amount <= 9223372036854775807 then amount end) stored, primary key (tx_id, log_index, direction));
create index on witness.transfers (payable, account);
create table witness.acknowledged (
  n bigint generated always as identity primary key, project_id uuid not null, idempotency_key text not null, external_id text not null,
  invoice_id uuid not null, account bytea not null, payable bigint not null, expires_at timestamptz not null,
  head_number bigint not null, asked_at timestamptz not null, acknowledged_at timestamptz not null, examined_before bigint not null,
  dark_since timestamptz);
create index on witness.acknowledged (payable, account);
create index on witness.acknowledged (invoice_id);
create table witness.appearances (
  tx_id bytea not null, log_index int not null, block_number bigint not null, block_id bytea not null, at timestamptz not null,
  primary key (tx_id, log_index, block_id));
create table witness.present (
  is_it boolean primary key default true check (is_it), now timestamptz, calm_since timestamptz, slot interval, solid_number bigint, head_number bigint, branch jsonb);
insert into witness.present default values;
-- Changes of status after_n … up_to_n happened while no watcher could see a block that was made after from_at.
create table witness.blindness (from_at timestamptz primary key, after_n bigint not null, up_to_n bigint not null);

-- What is taken down.
create table witness.transitions (
  n bigint generated always as identity primary key, invoice_id uuid not null, before text, after text not null, solid_number bigint,
  examined_number bigint, examined_id bytea, examined_time timestamptz);
create index on witness.transitions (invoice_id, n);
create table witness.events (
  event_id uuid primary key, project_id uuid not null, position bigint not null, body_md5 text not null, invoice_id uuid, sequence int,
  type text not null, late boolean, tx_id bytea, log_index int, block_time timestamptz);
create index on witness.events (invoice_id, sequence);
-- Blocks in the order in which they were examined. One that a cursor stands at stands for all below it, too.
create table witness.examined (n bigint generated always as identity primary key, number bigint not null, block_id bytea not null, is_solid boolean not null);
create index on witness.examined (block_id, n);
-- How many blocks had been examined when an address was added, and when a watcher took the lease. A new watcher remembers no examined block.
create table witness.added (account bytea primary key, n bigint not null);
create table witness.successions (n bigint not null);
create table witness.planned (event_id uuid, endpoint_id uuid, primary key (event_id, endpoint_id));
create table witness.ended (event_id uuid, endpoint_id uuid, status text, primary key (event_id, endpoint_id));
create table witness.setbacks (n bigint generated always as identity primary key, before bigint not null, after bigint);

create function witness.take_down_transition() returns trigger language plpgsql security definer as $$
begin
  if tg_op = 'UPDATE' and old.status = new.status then return null; end if;
  insert into witness.transitions (invoice_id, before, after, solid_number, examined_number, examined_id, examined_time)
    select new.id, case tg_op when 'UPDATE' then old.status end, new.status, c.solid_number, coalesce(h.number, c.solid_number),
      coalesce(h.block_id, c.solid_id), coalesce(h.block_time, c.solid_time)
    from (select 1) one
    left join chain_cursors c on c.network = new.network
    left join lateral (select * from head_blocks where network = new.network order by number desc limit 1) h on true;
  return null;
end $$;
create trigger witness_transition after insert or update of status on invoices for each row execute function witness.take_down_transition();

create function witness.take_down_event() returns trigger language plpgsql security definer as $$
declare payment jsonb := case when new.type like 'invoice.%' then new.body::jsonb #> '{data,payment,transaction}' end;
begin
  insert into witness.events values (new.id, new.project_id, new.position, md5(new.body), new.invoice_id, new.sequence, new.type,
    (payment->>'late')::boolean, decode(payment->>'txId', 'hex'), (payment->>'logIndex')::int, (payment->>'blockTime')::timestamptz);
  if new.type <> 'ping' then
    insert into witness.planned select new.id, w.id from webhook_endpoints w
      where w.project_id = new.project_id and w.disabled_at is null and (w.event_types is null or new.type = any (w.event_types));
  end if;
  return null;
end $$;
create trigger witness_event after insert on events for each row execute function witness.take_down_event();

-- An endpoint that was changed between the writing of an event and its commit may be told of it or not.
create function witness.settle_event() returns trigger language plpgsql security definer as $$
begin
  delete from witness.planned p where p.event_id = new.id and not exists (
    select from webhook_endpoints w where w.id = p.endpoint_id and w.disabled_at is null
      and (w.event_types is null or new.type = any (w.event_types)));
  return null;
end $$;
create constraint trigger witness_event_settled after insert on events deferrable initially deferred
  for each row execute function witness.settle_event();

create function witness.take_down_end() returns trigger language plpgsql security definer as $$
begin
  insert into witness.ended values (old.event_id, old.endpoint_id, old.status) on conflict do nothing;
  return null;
end $$;
create trigger witness_delivery_ended after delete on deliveries for each row execute function witness.take_down_end();

create function witness.take_down_setback() returns trigger language plpgsql security definer as $$
begin
  if tg_op = 'DELETE' then insert into witness.setbacks (before) values (old.solid_number);
  elsif new.solid_number < old.solid_number then
    insert into witness.setbacks (before, after) values (old.solid_number, new.solid_number);
  end if;
  return null;
end $$;
create trigger witness_setback after update or delete on chain_cursors for each row execute function witness.take_down_setback();

create function witness.take_down_examined() returns trigger language plpgsql security definer as $$
begin
  if tg_table_name = 'head_blocks' then insert into witness.examined (number, block_id, is_solid) values (new.number, new.block_id, false);
  else insert into witness.examined (number, block_id, is_solid) values (new.solid_number, new.solid_id, true);
  end if;
  return null;
end $$;
create trigger witness_examined after insert on head_blocks for each row execute function witness.take_down_examined();
create trigger witness_recorded after insert or update of solid_number on chain_cursors for each row execute function witness.take_down_examined();
-- How many blocks were examined by now.
create function witness.examined_count() returns bigint stable language sql as $$ select coalesce(max(n), 0) from witness.examined $$;
create function witness.take_down_added() returns trigger language plpgsql security definer as $$
begin
  insert into witness.added values (new.account, witness.examined_count()) on conflict do nothing;
  return null;
end $$;
create trigger witness_added after insert on addresses for each row execute function witness.take_down_added();
create function witness.take_down_succession() returns trigger language plpgsql security definer as $$
begin
  if tg_op = 'UPDATE' and old.epoch = new.epoch or new.name not like 'watcher:%' then return null; end if;
  insert into witness.successions values (witness.examined_count());
  return null;
end $$;
create trigger witness_succession after insert or update on leases for each row execute function witness.take_down_succession();

create function witness.feed(told jsonb) returns setof text language plpgsql as $$
begin
  insert into witness.blocks select (b->>0)::bigint, decode(b->>1, 'hex'), to_timestamp((b->>2)::float8 / 1000)
    from jsonb_array_elements(told->'blocks') b;
  insert into witness.accounts select decode(a->>0, 'hex'), (a->>1)::bigint from jsonb_array_elements(told->'accounts') a
    on conflict (account) do update set head_number = least(accounts.head_number, excluded.head_number);
  insert into witness.transfers (direction, tx_id, log_index, block_number, account, amount) select t->>0, decode(t->>1, 'hex'), (t->>2)::int, (t->>3)::bigint, decode(t->>4, 'hex'), (t->>5)::numeric
    from jsonb_array_elements(told->'transfers') t;
  insert into witness.acknowledged (project_id, idempotency_key, external_id, invoice_id, account, payable, expires_at, head_number,
      asked_at, acknowledged_at, examined_before, dark_since)
    select (a->>0)::uuid, a->>1, a->>2, (a->>3)::uuid, decode(a->>4, 'hex'), (a->>5)::bigint,
      to_timestamp((a->>6)::float8 / 1000), (a->>7)::bigint, to_timestamp((a->>8)::float8 / 1000), to_timestamp((a->>9)::float8 / 1000),
      (a->>10)::bigint, to_timestamp((a->>11)::float8 / 1000)
    from jsonb_array_elements(told->'acknowledged') a;
  insert into witness.appearances select decode(a->>0, 'hex'), (a->>1)::int, (a->>2)::bigint, decode(a->>3, 'hex'), to_timestamp((a->>4)::float8 / 1000)
    from jsonb_array_elements(told->'appearances') a on conflict do nothing;
  update witness.present set now = to_timestamp((told->>'now')::float8 / 1000), solid_number = (told->>'solid')::bigint, head_number = (told->>'head')::bigint,
    calm_since = to_timestamp((told->>'calm')::float8 / 1000), slot = (told->>'slot')::float8 * interval '1 ms', branch = told->'branch';
  insert into witness.blindness
    select to_timestamp((told->>'blind')::float8 / 1000), coalesce(max(n), 0), coalesce(max(n), 0) from witness.transitions
    having told->>'blind' is not null
    on conflict (from_at) do update set up_to_n = excluded.up_to_n;
  return query select encode(a.account, 'hex') from addresses a left join witness.accounts s using (account) where s.account is null;
end $$;

create function witness.is_canonical(the_number bigint, the_id bytea) returns boolean stable language sql as $$
  select exists (select from witness.blocks b where b.number = the_number and b.id = the_id)
$$;
-- Whether nobody can know a block's transfers to an address that was added after it was examined.
create function witness.is_forgotten(examined_n bigint, the_id bytea, the_account bytea) returns boolean stable language sql as $$
  select exists (select from witness.added a where a.account = the_account and a.n >= examined_n)
    and exists (select from witness.successions s where s.n >= examined_n)
    and not exists (select from witness.blocks b where b.id = the_id)
$$;
-- When a transfer came to stand in a block for the first time, of whatever branch.
create function witness.appeared_at(the_tx bytea, the_index int) returns timestamptz stable language sql as $$
  select min(at) from witness.appearances where tx_id = the_tx and log_index = the_index
$$;
-- Transfers to our addresses up to the cursor. is_due: in a block that was made after the address was known to be ours.
create view witness.ours as
  select t.*, b.time as block_time, b.id as block_id, coalesce(t.block_number > s.head_number, false) as is_due
  from witness.transfers t join witness.accounts s using (account) join witness.blocks b on b.number = t.block_number
  join chain_cursors c on c.network = 'devnet' and t.block_number <= c.solid_number;
`;
