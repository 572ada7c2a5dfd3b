-- What PAID means: one matched transfer, and one event that tells of it. Judged at the commit, because several statements write a payment.
-- A transfer that was taken back stays matched, its invoice PAID, and its event told, so a repair changes nothing here.

create or replace function refuse_untold_change() returns trigger language plpgsql as $$
begin
  raise exception 'invoice % went from % to % with % more events: each change of its status is one event', new.id, old.status, new.status,
    new.event_count - old.event_count using errcode = 'check_violation';
end $$;
create trigger invoices_tell_each_change before update on invoices for each row
  when (new.event_count - old.event_count <> (new.status <> old.status)::integer)
  execute function refuse_untold_change();

create or replace function prove_status() returns trigger language plpgsql as $$
begin
  if not exists (
    select from events e
    where e.project_id = new.project_id and e.invoice_id = new.id and e.sequence = new.event_count
      and e.type = 'invoice.' || lower(new.status) and (new.status <> 'PAID' or e.transfer_id = new.paid_transfer_id)) then
    raise exception 'invoice % is % without an event % that says so', new.id, new.status, new.event_count
      using errcode = 'check_violation';
  end if;
  if new.status = 'PAID' and not exists (select from transfers t where t.id = new.paid_transfer_id and t.kind = 'matched') then
    raise exception 'invoice % is PAID by transfer %, which pays nothing', new.id, new.paid_transfer_id
      using errcode = 'check_violation';
  end if;
  return null;
end $$;
create constraint trigger invoices_have_told_their_status after update on invoices deferrable initially deferred
  for each row when (new.status <> old.status) execute function prove_status();
create constraint trigger invoices_begin_told after insert on invoices deferrable initially deferred
  for each row when (new.status <> 'PENDING' or new.event_count <> 0) execute function prove_status();

create or replace function prove_match() returns trigger language plpgsql as $$
begin
  if not exists (
    select from invoices i
    where i.project_id = new.project_id and i.id = new.invoice_id and i.status = 'PAID' and i.paid_transfer_id = new.id) then
    raise exception 'transfer % is matched, and invoice % is not PAID by it', new.id, new.invoice_id using errcode = 'check_violation';
  end if;
  return null;
end $$;
create constraint trigger transfers_pay_their_invoice after insert on transfers deferrable initially deferred
  for each row when (new.kind = 'matched') execute function prove_match();

create or replace function prove_event() returns trigger language plpgsql as $$
begin
  if not exists (
    select from invoices i
    where i.project_id = new.project_id and i.id = new.invoice_id and new.sequence <= i.event_count
      and (new.type <> 'invoice.paid'
        or i.status = 'PAID' and i.paid_transfer_id = new.transfer_id and i.event_count = new.sequence)) then
    raise exception 'event % (%, number %) tells what invoice % is not', new.id, new.type, new.sequence, new.invoice_id
      using errcode = 'check_violation';
  end if;
  if new.sequence > 1 and not exists (
    select from events e
    where e.project_id = new.project_id and e.invoice_id = new.invoice_id and e.sequence = new.sequence - 1) then
    raise exception 'event % has number %, and invoice % has none before it', new.id, new.sequence, new.invoice_id
      using errcode = 'check_violation';
  end if;
  return null;
end $$;
create constraint trigger events_tell_of_their_invoice after insert on events deferrable initially deferred
  for each row when (new.invoice_id is not null and new.type like 'invoice.%') execute function prove_event();

-- A cursor moves with the blocks that were examined, by the process that follows the network. An empty block writes nothing else, so what the
-- blocks held is not judged here.
create or replace function refuse_lone_move() returns trigger language plpgsql as $$
begin
  if new.solid_number <= old.solid_number or new.solid_number > old.solid_number + 1000 then
    raise exception 'the cursor of % moves from block % to %: it goes forward, by 1,000 blocks at most', new.network, old.solid_number,
      new.solid_number using errcode = 'check_violation';
  end if;
  if not exists (select from leases where name = 'watcher:' || new.network and expires_at > now()) then
    raise exception 'the cursor of % moves, and no process follows that network', new.network using errcode = 'check_violation';
  end if;
  return new;
end $$;
create trigger chain_cursors_go_forward before update on chain_cursors for each row
  when (new.solid_number <> old.solid_number or new.solid_id <> old.solid_id) execute function refuse_lone_move();

create or replace function join_head_blocks() returns trigger language plpgsql as $$
begin
  if (select min(h.number) - c.solid_number from chain_cursors c join head_blocks h using (network) where c.network = new.network
    group by c.solid_number) <> 1 then
    raise exception 'the cursor of % moves to block %, and the examined blocks above it do not begin there', new.network, new.solid_number
      using errcode = 'check_violation';
  end if;
  return null;
end $$;
create constraint trigger chain_cursors_join_head_blocks after update on chain_cursors deferrable initially deferred
  for each row when (new.solid_number <> old.solid_number) execute function join_head_blocks();

-- Whoever may choose the search_path of a session must not choose the tables that a guard looks at; temporary ones come last.
do $$
declare
  guard text;
begin
  foreach guard in array array['prove_status', 'prove_match', 'prove_event', 'refuse_lone_move', 'join_head_blocks']
  loop
    execute format('alter function %I() set search_path = pg_catalog, %I, pg_temp', guard, current_schema());
  end loop;
end $$;
