-- The audit log. Each row says who did it, and holds the SHA-256 of the row before and of its own content, so that a row which is changed,
-- left out or put in between shows. Rows are numbered in the order of their commits. What is done to people, keys and webhooks stands in
-- it too, so actions are no longer listed here.
alter table operator_actions
  drop constraint operator_actions_action_check,
  add constraint operator_actions_action_check check (action ~ '^[a-z]+(-[a-z]+)*\.[a-z]+(-[a-z]+)*$' and char_length(action) <= 60),
  drop constraint operator_actions_project,
  add column actor_kind text not null default 'cli' check (actor_kind in ('cli', 'console', 'admin', 'service')),
  add column actor_id uuid,
  add column origin text check (char_length(origin) between 1 and 200),
  add column request_id text check (char_length(request_id) between 1 and 200),
  add column seq bigint,
  add column hash bytea check (octet_length(hash) = 32);

-- The content of a row in bytes: each field as the count of its bytes, ":" and its bytes, or "-" where it is null.
create function operator_action_content(a operator_actions) returns bytea language sql stable as $$
  select convert_to(string_agg(coalesce(octet_length(convert_to(field, 'UTF8'))::text || ':' || field, '-'), '' order by place), 'UTF8')
  from unnest(array[a.seq::text, to_char(a.acted_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), a.actor_kind, a.actor_id::text, a.acted_by, a.origin,
    a.request_id, a.project_id::text, a.action, a.subject, a.detail::text]) with ordinality as _ (field, place)
$$;

-- One writer at a time until its transaction ends, so that the numbers have no gap and each row knows the one before.
create function chain_operator_action() returns trigger language plpgsql as $$
declare
  last record;
begin
  perform pg_advisory_xact_lock(hashtext(format('%I.operator_actions', tg_table_schema)));
  select seq, hash into last from operator_actions order by seq desc limit 1;
  new.seq := coalesce(last.seq, 0) + 1;
  new.hash := sha256(coalesce(last.hash, decode(repeat('00', 32), 'hex')) || operator_action_content(new));
  return new;
end $$;

alter table operator_actions disable trigger operator_actions_are_kept;
do $$
declare
  each operator_actions;
  number bigint := 0;
  before bytea := decode(repeat('00', 32), 'hex');
begin
  for each in select * from operator_actions order by id loop
    number := number + 1;
    each.seq := number;
    before := sha256(before || operator_action_content(each));
    update operator_actions set seq = number, hash = before where id = each.id;
  end loop;
end $$;
alter table operator_actions enable trigger operator_actions_are_kept;
alter table operator_actions
  alter column seq set not null,
  alter column hash set not null,
  add constraint operator_actions_seq unique (seq);

-- A restored row has its number and its hash, which only the owner of the tables can give.
create trigger operator_actions_are_chained before insert on operator_actions for each row
  when (new.seq is null or new.hash is null) execute function chain_operator_action();
