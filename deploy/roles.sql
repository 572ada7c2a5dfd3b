-- What the service and most commands may do in the database: read, insert, and update these columns. Neither delete nor truncate
-- anything, nor change the schema. "quittance migrate" runs this whenever the role is there; to run it by hand, as the owner of the
-- tables: psql --single-transaction -f roles.sql. A change here comes with a migration, so that no release starts without its grants,
-- and a grant stays for one release longer than what needs it, so that the former release goes on during an upgrade.

do $$
declare
  found record;
begin
  if to_regrole('quittance_runtime') is null then
    create role quittance_runtime nologin;
  end if;
  for found in select oid::regclass as name from pg_class
    where relnamespace = quote_ident(current_schema())::regnamespace and relkind in ('r', 'p') and pg_has_role(relowner, 'usage')
  loop
    execute format('revoke all on %s from public, quittance_runtime', found.name);
  end loop;
  execute format('revoke create on schema %I from public, quittance_runtime', current_schema());
  execute format('grant usage on schema %I to quittance_runtime', current_schema());
  -- Only who granted a right can take it back, and the schema may be somebody else's.
  if has_schema_privilege('quittance_runtime', current_schema(), 'create') then
    raise exception 'anybody may make tables in the schema %, which is not this user''s: as a superuser, run: alter schema % owner to %',
      current_schema(), quote_ident(current_schema()), quote_ident(current_user) using errcode = 'QT008';
  end if;
  -- A temporary table would go before ours in the eyes of whoever names them without their schema.
  execute format('revoke temporary on database %I from public, quittance_runtime', current_database());
end $$;

grant select on schema_migrations, ledger_identity, ledger_proofs, projects, api_keys, account_keys, addresses, logos, invoices, refused_amounts,
  allocation_hints, transfers, transfer_annulments, transfer_resolutions, transfer_refunds, claim_requests, transfer_claims, outgoing_transfers, outgoing_corrections,
  outgoing_annulments, balance_checks, chain_cursors, head_blocks, sightings, arrivals, passed_blocks, producer_sets, producer_confirmations,
  chain_status, leases, alarms, event_streams, events, webhook_endpoints, webhook_secrets, adapter_orders, deliveries,
  delivery_attempts, untold_transfers, set_aside, receipt_keys, operator_actions, people, passkeys, recovery_codes, invitations, sessions,
  spent_challenges, admin_keys, requests, address_changes, inventory_pages, notify_channels, notifications to quittance_runtime;

grant insert on ledger_identity, ledger_proofs, projects, api_keys, account_keys, addresses, logos, invoices, refused_amounts, allocation_hints,
  transfers, transfer_annulments, transfer_resolutions, transfer_refunds, claim_requests, transfer_claims, outgoing_transfers, outgoing_corrections,
  outgoing_annulments, balance_checks,
  chain_cursors, head_blocks, sightings, arrivals, passed_blocks, producer_sets, producer_confirmations, chain_status, leases, alarms,
  event_streams, events, webhook_endpoints, webhook_secrets, adapter_orders, deliveries, delivery_attempts, untold_transfers, set_aside, receipt_keys,
  people, passkeys, recovery_codes, invitations, sessions, spent_challenges, admin_keys, requests, address_changes, inventory_pages, notify_channels, notifications
  to quittance_runtime;
-- Number and hash are given by a trigger.
grant insert (project_id, action, subject, detail, acted_by, acted_at, actor_kind, actor_id, origin, request_id, mac)
  on operator_actions to quittance_runtime;

-- In these tables, guards (keep_columns) name the columns that can change. Some of them only the owner changes; the rest are granted.
-- "npm run schema:record" writes the following grants.
grant update (auto_derive_limit, auto_derived) on account_keys to quittance_runtime;
grant update (state, ended_at, ended_by, reason) on address_changes to quittance_runtime;
grant update (retired_at, freeze_state, freeze_block) on addresses to quittance_runtime;
grant update (last_used_at, revoked_at, mac) on admin_keys to quittance_runtime;
grant update (detail, seen_at, seen_count, resolved_at, mac, closed_mac) on alarms to quittance_runtime;
grant update (last_used_at, revoked_at, mac) on api_keys to quittance_runtime;
grant update (good_block, checked_block, balance_micro, expected_micro, node, checked_at, due_at)
  on balance_checks to quittance_runtime;
grant update (solid_number, solid_id, solid_time, updated_at, live_time, live_at, halted_at, halt_reason, pause_state,
  pause_block, mac) on chain_cursors to quittance_runtime;
grant update (last_position) on event_streams to quittance_runtime;
grant update (content, mac) on inventory_pages to quittance_runtime;
grant update (status, event_count, paid_transfer_id, paid_mac, withdrawn_at, withdrawn_mac)
  on invoices to quittance_runtime;
grant update (system_identifier, database_oid, timeline, taken_at) on ledger_identity to quittance_runtime;
grant update (status, claimed_until, ended_at) on notifications to quittance_runtime;
grant update (master_key_id, sealed, removed_at, failing_since, failures, due_at, last_error, last_sent_at, mac)
  on notify_channels to quittance_runtime;
grant update (counter, last_used_at, removed_at, mac) on passkeys to quittance_runtime;
grant update (role, projects, removed_at, password_hash, master_key_id, totp_sealed, totp_step, misses, missed_at, mac)
  on people to quittance_runtime;
grant update (name, policy, max_surcharge_micro, invoice_lifetime_ms, support_contact, return_url, embed_origins, accent,
  logo_id, max_unpaid, max_unpaid_per_minute, archived_at, mac, limits_mac) on projects to quittance_runtime;
grant update (master_key_id, sealed, retired_at) on receipt_keys to quittance_runtime;
grant update (ended_at, mac) on recovery_codes to quittance_runtime;
grant update (reason, tries, due_at) on set_aside to quittance_runtime;
grant update (url, description, event_types, failing_since, consecutive_failures, open_until, disabled_at,
  disabled_reason, rate_micro, rate_source, rate_min_micro, rate_max_micro, read_micro, read_at, read_mac, mac)
  on webhook_endpoints to quittance_runtime;
grant update (master_key_id, sealed, ends_at) on webhook_secrets to quittance_runtime;

-- No guard names the columns that can change in these tables.
grant update (refused_at) on refused_amounts to quittance_runtime;
grant update (position, epoch) on allocation_hints to quittance_runtime;
grant update (confirmed_at) on producer_confirmations to quittance_runtime;
grant update (updated_at, status) on chain_status to quittance_runtime;
grant update (holder, epoch, expires_at) on leases to quittance_runtime;
grant update (status, attempt_count, max_attempts, next_attempt_at, created_at, finished_at, last_status, last_error)
  on deliveries to quittance_runtime;
grant update (attempted_at, status, error, latency_ms, answer) on delivery_attempts to quittance_runtime;
grant update (ended_at, mac) on invitations to quittance_runtime;
grant update (seen_at, ended_at, stepped_up_at, mac) on sessions to quittance_runtime;

-- What is deleted is no part of the ledger, and goes by functions of the owner that reach nothing else.
grant execute on function forget_head_blocks_above, forget_head_blocks_up_to, forget_old_arrivals, forget_finished_deliveries, forget_told_transfers, forget_set_aside,
  forget_claim_requests,
  lock_transfers,
  hurry_devnet_invoice, forget_old_sessions, forget_old_requests, forget_old_notifications to quittance_runtime;
