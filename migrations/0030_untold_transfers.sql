-- Transfers that paid nothing and of which no event tells yet. The likeliest reason is judged outside the transaction that records them, so
-- that no opinion holds up payments. Rows only say where to look: whether a transfer was told of is said by its event alone.
create table untold_transfers (
  network text not null,
  transfer_id uuid not null,
  project_id uuid not null,
  primary key (network, transfer_id, project_id)
);

-- Whoever asks, it removes no row of a transfer that has no event.
create function forget_told_transfers(of_network text, ids uuid[]) returns void
  language sql security definer
begin atomic
  delete from untold_transfers u
  where u.network = of_network and u.transfer_id = any(ids) and exists (
    select from events e
    where e.transfer_id = u.transfer_id and e.project_id = u.project_id and e.type in ('transfer.unmatched', 'transfer.duplicate'));
end;
revoke execute on function forget_told_transfers from public;
