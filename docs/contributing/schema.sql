-- The current schema, as the migrations create it in an empty database and PostgreSQL describes it.
-- This page is generated. `npm run docs:record` regenerates it. A restore and the owner write every table.

-- Written by src/core/store/ledger/account-keys.ts
-- Written by src/faces/operator/backup/restore-backup.ts
-- Written by src/faces/operator/subjects/address-derivation.ts
create table account_keys (
  auto_derive_limit integer not null default 0,
  auto_derived integer not null default 0,
  created_at timestamp with time zone not null default now(),
  first_index integer not null default 0,
  id uuid not null,
  mac bytea,
  network text not null,
  project_id uuid not null,
  xpub text not null,
  constraint account_keys_auto_derive_limit_bounds CHECK (((auto_derive_limit >= 0) AND (auto_derive_limit <= 1000000000))) NOT VALID,
  constraint account_keys_auto_derive_limit_check CHECK ((auto_derive_limit >= 0)),
  constraint account_keys_auto_derived_bounds CHECK (((auto_derived >= 0) AND (auto_derived <= 1000000000))) NOT VALID,
  constraint account_keys_auto_derived_check CHECK ((auto_derived >= 0)),
  constraint account_keys_first_index_check CHECK ((first_index >= 0)),
  constraint account_keys_mac_check CHECK ((octet_length(mac) = 24)),
  constraint account_keys_network_xpub_key UNIQUE (network, xpub),
  constraint account_keys_pkey PRIMARY KEY (id),
  constraint account_keys_project_id_network_fkey FOREIGN KEY (project_id, network) REFERENCES projects(id, network),
  constraint account_keys_project_id_network_id_key UNIQUE (project_id, network, id),
  constraint account_keys_xpub_check CHECK (((char_length(xpub) = 111) AND (xpub ~~ 'xpub%'::text)))
);
CREATE TRIGGER account_keys_are_kept BEFORE DELETE OR TRUNCATE ON account_keys FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE TRIGGER account_keys_go_forward BEFORE UPDATE ON account_keys FOR EACH ROW WHEN ((new.first_index < old.first_index)) EXECUTE FUNCTION refuse_way_back('first_index');
CREATE TRIGGER account_keys_keep_what_they_are BEFORE UPDATE ON account_keys FOR EACH ROW EXECUTE FUNCTION keep_columns('first_index', 'auto_derive_limit', 'auto_derived', 'mac');

-- Written by src/core/store/outbox/adapter-orders.ts
create table adapter_orders (
  amount text not null,
  created_at timestamp with time zone not null,
  dialect text not null,
  endpoint_id uuid not null,
  invoice_id uuid not null,
  mac bytea,
  name text,
  notify_url text not null,
  param text,
  project_id uuid not null,
  return_url text,
  type text,
  constraint adapter_orders_amount_check CHECK (((char_length(amount) >= 1) AND (char_length(amount) <= 20))),
  constraint adapter_orders_dialect_check CHECK ((dialect = ANY (ARRAY['epusdt'::text, 'bepusdt'::text, 'gmpay'::text, 'epay'::text]))),
  constraint adapter_orders_mac_check CHECK ((octet_length(mac) = 24)),
  constraint adapter_orders_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 500))),
  constraint adapter_orders_notify_url_check CHECK (((char_length(notify_url) >= 1) AND (char_length(notify_url) <= 2048))),
  constraint adapter_orders_param_check CHECK (((char_length(param) >= 1) AND (char_length(param) <= 500))),
  constraint adapter_orders_pkey PRIMARY KEY (project_id, invoice_id),
  constraint adapter_orders_project_id_endpoint_id_fkey FOREIGN KEY (project_id, endpoint_id) REFERENCES webhook_endpoints(project_id, id),
  constraint adapter_orders_project_id_invoice_id_fkey FOREIGN KEY (project_id, invoice_id) REFERENCES invoices(project_id, id),
  constraint adapter_orders_return_url_check CHECK (((char_length(return_url) >= 1) AND (char_length(return_url) <= 2048))),
  constraint adapter_orders_type_check CHECK (((char_length(type) >= 1) AND (char_length(type) <= 50)))
);
CREATE INDEX adapter_orders_url ON adapter_orders USING btree (endpoint_id, hashtextextended(notify_url, (0)::bigint));
CREATE TRIGGER adapter_orders_are_kept BEFORE DELETE OR TRUNCATE ON adapter_orders FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE TRIGGER adapter_orders_keep_what_they_are BEFORE UPDATE ON adapter_orders FOR EACH ROW EXECUTE FUNCTION keep_columns('mac');

-- Written by src/core/payments/apply-address-change.ts
create table address_changes (
  acted_by text not null,
  actor_id uuid not null,
  actor_kind text not null,
  addresses text[] not null,
  auto_derive_limit integer,
  due_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  ended_by text,
  first_index integer not null,
  id uuid not null,
  indexes bigint[],
  key_first_index integer,
  kind text not null,
  network text not null,
  origin text,
  policy text not null,
  project_id uuid not null,
  proposed_at timestamp with time zone not null,
  reason text,
  state text not null default 'waiting'::text,
  xpub text,
  constraint address_changes_acted_by_check CHECK (((char_length(acted_by) >= 1) AND (char_length(acted_by) <= 200))),
  constraint address_changes_actor_kind_check CHECK ((actor_kind = ANY (ARRAY['console'::text, 'admin'::text]))),
  constraint address_changes_addresses_check CHECK (((cardinality(addresses) >= 1) AND (cardinality(addresses) <= 500))),
  constraint address_changes_auto_derive_limit_check CHECK ((auto_derive_limit >= 0)),
  constraint address_changes_check CHECK ((due_at >= (proposed_at + '24:00:00'::interval))),
  constraint address_changes_derived CHECK (
CASE kind
    WHEN 'add'::text THEN (num_nonnulls(indexes, xpub, key_first_index, auto_derive_limit) = 0)
    ELSE ((num_nulls(indexes, xpub, key_first_index, auto_derive_limit) = 0) AND (cardinality(indexes) = cardinality(addresses)))
END),
  constraint address_changes_end CHECK ((((state = 'waiting'::text) = (ended_at IS NULL)) AND ((ended_at IS NULL) = (ended_by IS NULL)))),
  constraint address_changes_ended_at_bounds CHECK (((ended_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (ended_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint address_changes_ended_by_check CHECK (((char_length(ended_by) >= 1) AND (char_length(ended_by) <= 200))),
  constraint address_changes_first_index_check CHECK ((first_index >= 0)),
  constraint address_changes_key_first_index_check CHECK ((key_first_index >= 0)),
  constraint address_changes_kind_check CHECK ((kind = ANY (ARRAY['add'::text, 'derive'::text]))),
  constraint address_changes_origin_check CHECK (((char_length(origin) >= 1) AND (char_length(origin) <= 200))),
  constraint address_changes_pkey PRIMARY KEY (id),
  constraint address_changes_policy_check CHECK ((policy = ANY (ARRAY['tail'::text, 'tail-4'::text, 'tail-3'::text, 'exact'::text]))),
  constraint address_changes_project_id_network_fkey FOREIGN KEY (project_id, network) REFERENCES projects(id, network),
  constraint address_changes_reason CHECK (((state = 'failed'::text) = (reason IS NOT NULL))),
  constraint address_changes_reason_check CHECK (((char_length(reason) >= 1) AND (char_length(reason) <= 1000))),
  constraint address_changes_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'applied'::text, 'withdrawn'::text, 'failed'::text])))
);
CREATE INDEX address_changes_project ON address_changes USING btree (project_id, id);
CREATE INDEX address_changes_waiting ON address_changes USING btree (network, due_at) WHERE (state = 'waiting'::text);
CREATE TRIGGER address_changes_are_kept BEFORE DELETE OR TRUNCATE ON address_changes FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE TRIGGER address_changes_keep_what_they_are BEFORE UPDATE ON address_changes FOR EACH ROW EXECUTE FUNCTION keep_columns('state', 'ended_at', 'ended_by', 'reason');
CREATE TRIGGER address_changes_stay_ended BEFORE UPDATE ON address_changes FOR EACH ROW WHEN ((old.state <> 'waiting'::text)) EXECUTE FUNCTION keep_columns();

-- Written by src/core/payments/contract-states.ts
-- Written by src/core/store/ledger/addresses.ts
-- Written by src/faces/operator/backup/restore-backup.ts
-- Written by src/faces/operator/subjects/addresses.ts
create table addresses (
  account bytea not null,
  account_key_id uuid,
  address text not null,
  barred_at timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  derivation_index integer,
  freeze_block bigint,
  freeze_state text,
  id uuid not null,
  mac bytea,
  network text not null,
  policy text not null default 'tail'::text,
  position integer not null,
  project_id uuid not null,
  retired_at timestamp with time zone,
  constraint addresses_account_check CHECK ((octet_length(account) = 20)),
  constraint addresses_address_check CHECK ((char_length(address) = 34)),
  constraint addresses_barred CHECK (((barred_at IS NULL) OR (retired_at IS NOT NULL))),
  constraint addresses_derivation_index_check CHECK ((derivation_index >= 0)),
  constraint addresses_derived CHECK (((account_key_id IS NULL) = (derivation_index IS NULL))),
  constraint addresses_derived_once UNIQUE (account_key_id, derivation_index),
  constraint addresses_freeze_block_bounds CHECK (((freeze_block >= '0'::bigint) AND (freeze_block <= '1000000000000'::bigint))) NOT VALID,
  constraint addresses_freeze_block_check CHECK ((freeze_block >= 0)),
  constraint addresses_freeze_state_check CHECK ((freeze_state = ANY (ARRAY['seen'::text, 'frozen'::text, 'lifted'::text]))),
  constraint addresses_mac_check CHECK ((octet_length(mac) = 24)),
  constraint addresses_network_account_key UNIQUE (network, account),
  constraint addresses_pkey PRIMARY KEY (id),
  constraint addresses_policy_check CHECK ((policy = ANY (ARRAY['tail'::text, 'tail-4'::text, 'tail-3'::text, 'exact'::text]))),
  constraint addresses_position_check CHECK (("position" > 0)),
  constraint addresses_project_id_network_account_key_id_fkey FOREIGN KEY (project_id, network, account_key_id) REFERENCES account_keys(project_id, network, id),
  constraint addresses_project_id_network_fkey FOREIGN KEY (project_id, network) REFERENCES projects(id, network),
  constraint addresses_project_id_network_id_key UNIQUE (project_id, network, id),
  constraint addresses_project_id_position_key UNIQUE (project_id, "position"),
  constraint addresses_retired_at_bounds CHECK (((retired_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (retired_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint addresses_text CHECK ((address = tron_address(account)))
);
CREATE INDEX addresses_ends ON addresses USING btree (project_id, "left"(address, 4), "right"(address, 4));
CREATE INDEX addresses_frozen ON addresses USING btree (network) WHERE (freeze_state IS NOT NULL);
CREATE TRIGGER addresses_are_kept BEFORE DELETE OR TRUNCATE ON addresses FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE TRIGGER addresses_back_in_use AFTER UPDATE ON addresses REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION forget_allocation_hints();
CREATE TRIGGER addresses_freeze_is_seen BEFORE UPDATE ON addresses FOR EACH ROW WHEN (((new.freeze_block IS DISTINCT FROM old.freeze_block) AND (new.freeze_block IS NOT NULL))) EXECUTE FUNCTION refuse_later_freeze();
CREATE TRIGGER addresses_keep_what_they_are BEFORE UPDATE ON addresses FOR EACH ROW EXECUTE FUNCTION keep_columns('retired_at', 'barred_at', 'freeze_state', 'freeze_block', 'mac');
CREATE TRIGGER addresses_stay_barred BEFORE UPDATE ON addresses FOR EACH ROW WHEN (((old.barred_at IS NOT NULL) AND (new.barred_at IS DISTINCT FROM old.barred_at))) EXECUTE FUNCTION keep_addresses_barred();
CREATE TRIGGER addresses_tell_their_freeze AFTER UPDATE OF freeze_state ON addresses FOR EACH ROW WHEN ((old.freeze_state IS DISTINCT FROM new.freeze_state)) EXECUTE FUNCTION tell_all_pages();

-- Written by src/faces/operator/subjects/admin-keys.ts
create table admin_keys (
  allowed_cidrs text[],
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone,
  id uuid not null,
  last_used_at timestamp with time zone,
  mac bytea,
  name text not null,
  projects uuid[],
  revoked_at timestamp with time zone,
  role text not null,
  secret_sha256 bytea not null,
  constraint admin_keys_finite CHECK (isfinite(expires_at)) NOT VALID,
  constraint admin_keys_last_used_at_bounds CHECK (((last_used_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (last_used_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint admin_keys_mac_check CHECK ((octet_length(mac) = 24)),
  constraint admin_keys_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 100))),
  constraint admin_keys_pkey PRIMARY KEY (id),
  constraint admin_keys_projects_check CHECK (((cardinality(projects) >= 1) AND (cardinality(projects) <= 100))),
  constraint admin_keys_revoked_at_bounds CHECK (((revoked_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (revoked_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint admin_keys_role_check CHECK ((role = ANY (ARRAY['viewer'::text, 'operator'::text, 'owner'::text]))),
  constraint admin_keys_secret_sha256_check CHECK ((octet_length(secret_sha256) = 32))
);
CREATE TRIGGER admin_keys_are_kept BEFORE DELETE OR TRUNCATE ON admin_keys FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE TRIGGER admin_keys_keep_what_they_are BEFORE UPDATE ON admin_keys FOR EACH ROW EXECUTE FUNCTION keep_columns('last_used_at', 'revoked_at', 'mac');
CREATE TRIGGER admin_keys_stay_revoked BEFORE UPDATE ON admin_keys FOR EACH ROW WHEN (((old.revoked_at IS NOT NULL) AND (new.revoked_at IS DISTINCT FROM old.revoked_at))) EXECUTE FUNCTION refuse_way_back('revoked_at');

-- Written by src/core/store/chain/alarms.ts
create table alarms (
  closed_mac bytea,
  detail text not null,
  id uuid not null,
  kind text not null,
  mac bytea,
  needs_closing boolean not null default false,
  network text not null,
  raised_at timestamp with time zone not null default now(),
  resolved_at timestamp with time zone,
  seen_at timestamp with time zone not null default now(),
  seen_count integer not null default 1,
  subject text not null,
  constraint alarms_closed_mac_check CHECK ((octet_length(closed_mac) = 24)),
  constraint alarms_detail_check CHECK ((char_length(detail) <= 2000)),
  constraint alarms_mac_check CHECK ((octet_length(mac) = 24)),
  constraint alarms_pkey PRIMARY KEY (id),
  constraint alarms_resolved_at_bounds CHECK (((resolved_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (resolved_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint alarms_seen_at_bounds CHECK (((seen_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (seen_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint alarms_seen_count_bounds CHECK (((seen_count >= 1) AND (seen_count <= 1000000000))) NOT VALID,
  constraint alarms_seen_count_check CHECK ((seen_count > 0))
);
CREATE INDEX alarms_history ON alarms USING btree (network, raised_at);
CREATE UNIQUE INDEX alarms_open ON alarms USING btree (network, kind, subject) WHERE (resolved_at IS NULL);
CREATE INDEX alarms_over ON alarms USING btree (resolved_at) WHERE (resolved_at IS NOT NULL);
CREATE INDEX alarms_unclosed ON alarms USING btree (network, kind, subject) WHERE ((resolved_at IS NOT NULL) AND needs_closing AND (closed_mac IS NULL));
CREATE TRIGGER alarms_are_kept BEFORE DELETE OR TRUNCATE ON alarms FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE TRIGGER alarms_keep_what_they_are BEFORE UPDATE ON alarms FOR EACH ROW EXECUTE FUNCTION keep_columns('detail', 'seen_at', 'seen_count', 'resolved_at', 'mac', 'closed_mac');
CREATE TRIGGER alarms_need_closing BEFORE INSERT OR UPDATE ON alarms FOR EACH ROW EXECUTE FUNCTION mark_closing();
CREATE TRIGGER alarms_stay_ended BEFORE UPDATE ON alarms FOR EACH ROW WHEN (((old.resolved_at IS NOT NULL) AND old.needs_closing)) EXECUTE FUNCTION keep_columns('detail', 'seen_at', 'seen_count', 'mac', 'closed_mac');
CREATE TRIGGER alarms_stay_resolved BEFORE UPDATE ON alarms FOR EACH ROW WHEN (((old.resolved_at IS NOT NULL) AND (NOT old.needs_closing))) EXECUTE FUNCTION keep_columns();

-- Written by src/core/store/ledger/allocation.ts
create table allocation_hints (
  below_micro bigint not null,
  epoch integer not null,
  from_micro bigint not null,
  policy text not null,
  position integer not null,
  project_id uuid not null,
  constraint allocation_hints_check CHECK ((below_micro > from_micro)),
  constraint allocation_hints_epoch_bounds CHECK (((epoch >= 0) AND (epoch <= 1000000000))) NOT VALID,
  constraint allocation_hints_from_micro_check CHECK ((from_micro > 0)),
  constraint allocation_hints_pkey PRIMARY KEY (project_id, policy, from_micro, below_micro),
  constraint allocation_hints_policy_check CHECK ((policy = ANY (ARRAY['tail'::text, 'tail-4'::text, 'tail-3'::text, 'exact'::text]))),
  constraint allocation_hints_position_bounds CHECK ((("position" >= 1) AND ("position" <= 1000000000))) NOT VALID,
  constraint allocation_hints_position_check CHECK (("position" > 0)),
  constraint allocation_hints_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id)
);

-- Written by src/core/store/access/api-keys.ts
-- Written by src/faces/operator/subjects/keys.ts
create table api_keys (
  allowed_cidrs text[],
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone,
  id uuid not null,
  last_used_at timestamp with time zone,
  mac bytea,
  name text not null,
  network text not null,
  project_id uuid not null,
  revoked_at timestamp with time zone,
  scopes text[],
  secret_sha256 bytea not null,
  constraint api_keys_finite CHECK (isfinite(expires_at)) NOT VALID,
  constraint api_keys_last_used_at_bounds CHECK (((last_used_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (last_used_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint api_keys_mac_check CHECK ((octet_length(mac) = 24)),
  constraint api_keys_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 100))),
  constraint api_keys_pkey PRIMARY KEY (id),
  constraint api_keys_project_id_network_fkey FOREIGN KEY (project_id, network) REFERENCES projects(id, network),
  constraint api_keys_revoked_at_bounds CHECK (((revoked_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (revoked_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint api_keys_scopes_check CHECK (((cardinality(scopes) > 0) AND (scopes <@ ARRAY['create'::text, 'read'::text, 'events'::text, 'webhooks'::text]))),
  constraint api_keys_secret_sha256_check CHECK ((octet_length(secret_sha256) = 32))
);
CREATE INDEX api_keys_project ON api_keys USING btree (project_id);
CREATE TRIGGER api_keys_are_kept BEFORE DELETE OR TRUNCATE ON api_keys FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE TRIGGER api_keys_keep_what_they_are BEFORE UPDATE ON api_keys FOR EACH ROW EXECUTE FUNCTION keep_columns('last_used_at', 'revoked_at', 'mac');
CREATE TRIGGER api_keys_stay_revoked BEFORE UPDATE ON api_keys FOR EACH ROW WHEN (((old.revoked_at IS NOT NULL) AND (new.revoked_at IS DISTINCT FROM old.revoked_at))) EXECUTE FUNCTION refuse_way_back('revoked_at');

-- Written by src/core/store/chain/incoming.ts
create table arrivals (
  address_id uuid not null,
  amount_micro bigint not null,
  first_time timestamp with time zone not null,
  log_index integer not null,
  network text not null,
  tx_id bytea not null,
  constraint arrivals_amount_micro_check CHECK ((amount_micro > 0)),
  constraint arrivals_first_time_check CHECK (isfinite(first_time)),
  constraint arrivals_log_index_check CHECK ((log_index >= 0)),
  constraint arrivals_pkey PRIMARY KEY (network, tx_id, log_index),
  constraint arrivals_tx_id_check CHECK ((octet_length(tx_id) = 32))
);
CREATE INDEX arrivals_age ON arrivals USING btree (network, first_time);
CREATE INDEX arrivals_amount ON arrivals USING btree (address_id, amount_micro);

-- Written by src/core/store/chain/balance-checks.ts
create table balance_checks (
  address_id uuid not null,
  balance_micro numeric(78,0) not null,
  checked_at timestamp with time zone not null,
  checked_block bigint not null,
  due_at timestamp with time zone not null,
  expected_micro numeric(79,0) not null,
  good_block bigint not null,
  network text not null,
  node text not null,
  opening_block bigint not null,
  opening_micro numeric(79,0) not null,
  project_id uuid not null,
  constraint balance_checks_balance_micro_check CHECK ((balance_micro >= (0)::numeric)),
  constraint balance_checks_check CHECK ((good_block >= opening_block)),
  constraint balance_checks_check1 CHECK ((checked_block >= good_block)),
  constraint balance_checks_checked_at_bounds CHECK (((checked_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (checked_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint balance_checks_checked_block_bounds CHECK (((checked_block >= '0'::bigint) AND (checked_block <= '1000000000000'::bigint))) NOT VALID,
  constraint balance_checks_due_at_bounds CHECK (((due_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (due_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint balance_checks_finite CHECK (((opening_micro <> 'NaN'::numeric) AND (balance_micro <> 'NaN'::numeric) AND (expected_micro <> 'NaN'::numeric))) NOT VALID,
  constraint balance_checks_good_block_bounds CHECK (((good_block >= '0'::bigint) AND (good_block <= '1000000000000'::bigint))) NOT VALID,
  constraint balance_checks_opening_block_check CHECK ((opening_block >= 0)),
  constraint balance_checks_pkey PRIMARY KEY (address_id),
  constraint balance_checks_project_id_network_address_id_fkey FOREIGN KEY (project_id, network, address_id) REFERENCES addresses(project_id, network, id)
);
CREATE INDEX balance_checks_due ON balance_checks USING btree (network, due_at);
CREATE TRIGGER balance_checks_are_kept BEFORE DELETE OR TRUNCATE ON balance_checks FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE TRIGGER balance_checks_keep_what_they_are BEFORE UPDATE ON balance_checks FOR EACH ROW EXECUTE FUNCTION keep_columns('good_block', 'checked_block', 'balance_micro', 'expected_micro', 'node', 'checked_at', 'due_at');

-- Written by src/core/payments/contract-states.ts
-- Written by src/core/store/chain/cursor.ts
create table chain_cursors (
  genesis_id bytea,
  halt_reason text,
  halted_at timestamp with time zone,
  live_at timestamp with time zone,
  live_time timestamp with time zone,
  mac bytea,
  network text not null,
  pause_block bigint,
  pause_state text,
  solid_id bytea not null,
  solid_number bigint not null,
  solid_time timestamp with time zone not null,
  updated_at timestamp with time zone not null default now(),
  constraint chain_cursors_genesis_id_check CHECK ((octet_length(genesis_id) = 32)),
  constraint chain_cursors_halt CHECK (((halted_at IS NULL) = (halt_reason IS NULL))),
  constraint chain_cursors_halted_at_bounds CHECK (((halted_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (halted_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint chain_cursors_live CHECK (((live_time IS NULL) = (live_at IS NULL))),
  constraint chain_cursors_live_at_bounds CHECK (((live_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (live_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint chain_cursors_live_at_check CHECK (isfinite(live_at)),
  constraint chain_cursors_live_clocks CHECK ((live_time <= (live_at + '00:00:30'::interval))) NOT VALID,
  constraint chain_cursors_live_time_bounds CHECK (((live_time >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (live_time <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint chain_cursors_live_time_check CHECK (isfinite(live_time)),
  constraint chain_cursors_mac_check CHECK ((octet_length(mac) = 24)),
  constraint chain_cursors_pause_block_bounds CHECK (((pause_block >= '0'::bigint) AND (pause_block <= '1000000000000'::bigint))) NOT VALID,
  constraint chain_cursors_pause_block_check CHECK ((pause_block >= 0)),
  constraint chain_cursors_pause_state_check CHECK ((pause_state = ANY (ARRAY['seen'::text, 'paused'::text]))),
  constraint chain_cursors_pkey PRIMARY KEY (network),
  constraint chain_cursors_solid_id_check CHECK ((octet_length(solid_id) = 32)),
  constraint chain_cursors_solid_number_bounds CHECK (((solid_number >= '0'::bigint) AND (solid_number <= '1000000000000'::bigint))) NOT VALID,
  constraint chain_cursors_solid_number_check CHECK ((solid_number >= 0)),
  constraint chain_cursors_solid_time_bounds CHECK (((solid_time >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (solid_time <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint chain_cursors_updated_at_bounds CHECK (((updated_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (updated_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID
);
CREATE TRIGGER chain_cursors_are_kept BEFORE DELETE OR TRUNCATE ON chain_cursors FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE TRIGGER chain_cursors_go_forward BEFORE UPDATE ON chain_cursors FOR EACH ROW WHEN (((new.solid_number <> old.solid_number) OR (new.solid_id <> old.solid_id))) EXECUTE FUNCTION refuse_lone_move();
CREATE CONSTRAINT TRIGGER chain_cursors_join_head_blocks AFTER UPDATE ON chain_cursors DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN ((new.solid_number <> old.solid_number)) EXECUTE FUNCTION join_head_blocks();
CREATE TRIGGER chain_cursors_keep_what_they_are BEFORE UPDATE ON chain_cursors FOR EACH ROW WHEN (((old.network IS DISTINCT FROM new.network) OR (old.genesis_id IS DISTINCT FROM new.genesis_id))) EXECUTE FUNCTION keep_columns('solid_number', 'solid_id', 'solid_time', 'updated_at', 'live_time', 'live_at', 'halted_at', 'halt_reason', 'pause_state', 'pause_block', 'mac');
CREATE TRIGGER chain_cursors_move_whole BEFORE UPDATE ON chain_cursors FOR EACH ROW WHEN ((((new.solid_number <> old.solid_number) <> (new.solid_id <> old.solid_id)) OR ((new.solid_number = old.solid_number) AND (new.solid_time <> old.solid_time)) OR ((new.solid_number <> old.solid_number) AND (new.mac = old.mac)))) EXECUTE FUNCTION refuse_value('solid_number', 'it moves with the id, the time and the seal of its block');
CREATE TRIGGER chain_cursors_pause_is_seen BEFORE UPDATE ON chain_cursors FOR EACH ROW WHEN (((new.pause_block IS DISTINCT FROM old.pause_block) AND (new.pause_block > (new.solid_number + 1000)))) EXECUTE FUNCTION refuse_value('pause_block', 'no process has seen that block');
CREATE TRIGGER chain_cursors_tell_their_pause AFTER UPDATE OF pause_state ON chain_cursors FOR EACH ROW WHEN ((old.pause_state IS DISTINCT FROM new.pause_state)) EXECUTE FUNCTION tell_all_pages();
CREATE TRIGGER chain_cursors_were_live BEFORE UPDATE OF live_at ON chain_cursors FOR EACH ROW EXECUTE FUNCTION refuse_later_than('live_at', '0 seconds');

-- Written by src/core/store/chain/status.ts
create table chain_status (
  network text not null,
  status jsonb not null,
  updated_at timestamp with time zone not null,
  constraint chain_status_pkey PRIMARY KEY (network),
  constraint chain_status_status_check CHECK ((jsonb_typeof(status) = 'object'::text)),
  constraint chain_status_updated_at_bounds CHECK (((updated_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (updated_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID
);

-- Written by src/core/store/ledger/checkout.ts
create table claim_requests (
  invoice_id uuid not null,
  network text not null,
  project_id uuid not null,
  requested_at timestamp with time zone not null default now(),
  tx_id bytea not null,
  constraint claim_requests_pkey PRIMARY KEY (network, project_id, invoice_id, tx_id),
  constraint claim_requests_project_id_invoice_id_fkey FOREIGN KEY (project_id, invoice_id) REFERENCES invoices(project_id, id),
  constraint claim_requests_tx_id_check CHECK ((octet_length(tx_id) = 32))
);

-- Written by src/core/payments/inventory/watch-inventory.ts
-- Written by src/core/store/outbox/deliveries.ts
-- Written by src/core/store/outbox/events.ts
-- Written by src/faces/operator/subjects/delivery-replay.ts
-- Written by src/faces/operator/subjects/webhook-sending.ts
create table deliveries (
  attempt_count integer not null default 0,
  created_at timestamp with time zone not null default now(),
  endpoint_id uuid not null,
  event_id uuid not null,
  finished_at timestamp with time zone,
  invoice_id uuid,
  last_error text,
  last_status integer,
  max_attempts integer not null default 12,
  next_attempt_at timestamp with time zone not null default now(),
  project_id uuid not null,
  sequence integer not null,
  status text not null default 'pending'::text,
  constraint deliveries_attempt_count_bounds CHECK (((attempt_count >= 0) AND (attempt_count <= 1000000))) NOT VALID,
  constraint deliveries_attempt_count_check CHECK ((attempt_count >= 0)),
  constraint deliveries_created_at_bounds CHECK (((created_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (created_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint deliveries_finished_at_bounds CHECK (((finished_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (finished_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint deliveries_last_status_bounds CHECK (((last_status >= 0) AND (last_status <= 999))) NOT VALID,
  constraint deliveries_max_attempts_bounds CHECK (((max_attempts >= 1) AND (max_attempts <= 2000000))) NOT VALID,
  constraint deliveries_max_attempts_check CHECK ((max_attempts > 0)),
  constraint deliveries_next_attempt_at_bounds CHECK (((next_attempt_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (next_attempt_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint deliveries_pkey PRIMARY KEY (event_id, endpoint_id),
  constraint deliveries_project_id_endpoint_id_fkey FOREIGN KEY (project_id, endpoint_id) REFERENCES webhook_endpoints(project_id, id),
  constraint deliveries_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'delivered'::text, 'dead'::text]))),
  constraint deliveries_tell_their_own_project FOREIGN KEY (project_id, event_id) REFERENCES events(project_id, id) NOT VALID
);
CREATE INDEX deliveries_dead ON deliveries USING btree (endpoint_id, event_id) WHERE (status = 'dead'::text);
CREATE INDEX deliveries_due ON deliveries USING btree (endpoint_id, next_attempt_at, created_at, sequence) WHERE (status = 'pending'::text);
CREATE INDEX deliveries_order ON deliveries USING btree (endpoint_id, invoice_id, sequence) WHERE (status = 'pending'::text);
CREATE TRIGGER deliveries_keep_what_they_are BEFORE UPDATE ON deliveries FOR EACH ROW WHEN (((old.event_id IS DISTINCT FROM new.event_id) OR (old.endpoint_id IS DISTINCT FROM new.endpoint_id) OR (old.project_id IS DISTINCT FROM new.project_id) OR (old.invoice_id IS DISTINCT FROM new.invoice_id) OR (old.sequence IS DISTINCT FROM new.sequence))) EXECUTE FUNCTION keep_columns();

-- Written by src/core/store/outbox/deliveries.ts
-- Written by src/faces/operator/subjects/webhook-sending.ts
create table delivery_attempts (
  answer text,
  attempt integer not null,
  attempted_at timestamp with time zone not null,
  endpoint_id uuid not null,
  error text,
  event_id uuid not null,
  latency_ms integer,
  status integer,
  constraint delivery_attempts_answer_check CHECK ((char_length(answer) <= 8192)),
  constraint delivery_attempts_attempt_check CHECK ((attempt > 0)),
  constraint delivery_attempts_attempted_at_bounds CHECK (((attempted_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (attempted_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint delivery_attempts_event_id_endpoint_id_fkey FOREIGN KEY (event_id, endpoint_id) REFERENCES deliveries(event_id, endpoint_id),
  constraint delivery_attempts_latency_ms_bounds CHECK (((latency_ms >= 0) AND (latency_ms <= 1000000000))) NOT VALID,
  constraint delivery_attempts_latency_ms_check CHECK ((latency_ms >= 0)),
  constraint delivery_attempts_pkey PRIMARY KEY (event_id, endpoint_id, attempt),
  constraint delivery_attempts_status_bounds CHECK (((status >= 0) AND (status <= 999))) NOT VALID
);

-- Written by src/core/store/outbox/events.ts
-- Written by src/developer/sandbox/fill/fill-sandbox.ts
-- Written by src/faces/operator/backup/restore-backup.ts
-- Written by src/faces/operator/subjects/webhook-sending.ts
create table event_streams (
  last_position bigint not null,
  project_id uuid not null,
  constraint event_streams_last_position_bounds CHECK (((last_position >= '1'::bigint) AND (last_position <= '1000000000000000'::bigint))) NOT VALID,
  constraint event_streams_last_position_check CHECK ((last_position > 0)),
  constraint event_streams_pkey PRIMARY KEY (project_id),
  constraint event_streams_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id)
);
CREATE TRIGGER event_streams_are_kept BEFORE DELETE OR TRUNCATE ON event_streams FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE TRIGGER event_streams_keep_what_they_are BEFORE UPDATE ON event_streams FOR EACH ROW EXECUTE FUNCTION keep_columns('last_position');
CREATE TRIGGER event_streams_rise BEFORE UPDATE ON event_streams FOR EACH ROW WHEN (((new.last_position < old.last_position) OR (new.last_position > (old.last_position + 1000000)))) EXECUTE FUNCTION refuse_value('last_position', 'it rises by 1,000,000 at most');

-- Written by src/core/store/outbox/events.ts
create table events (
  body text not null,
  created_at timestamp with time zone not null default now(),
  id uuid not null,
  invoice_id uuid,
  mac bytea,
  network text not null,
  position bigint not null,
  project_id uuid not null,
  sequence integer not null,
  transfer_id uuid,
  type text not null,
  constraint events_body_check CHECK ((octet_length(body) < 20000)),
  constraint events_mac_check CHECK ((octet_length(mac) = 24)),
  constraint events_pkey PRIMARY KEY (id),
  constraint events_position_check CHECK (("position" > 0)),
  constraint events_project_id_invoice_id_fkey FOREIGN KEY (project_id, invoice_id) REFERENCES invoices(project_id, id),
  constraint events_project_id_invoice_id_sequence_key UNIQUE (project_id, invoice_id, sequence),
  constraint events_project_id_network_fkey FOREIGN KEY (project_id, network) REFERENCES projects(id, network),
  constraint events_sequence_check CHECK ((sequence > 0)),
  constraint events_transfer_id_fkey FOREIGN KEY (transfer_id) REFERENCES transfers(id)
);
CREATE UNIQUE INDEX events_of_their_project ON events USING btree (project_id, id);
CREATE UNIQUE INDEX events_position ON events USING btree (project_id, "position");
CREATE INDEX events_transfer ON events USING btree (transfer_id) WHERE (transfer_id IS NOT NULL);
CREATE TRIGGER events_are_kept BEFORE DELETE OR TRUNCATE ON events FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE TRIGGER events_have_a_position BEFORE INSERT ON events FOR EACH ROW WHEN ((new."position" IS NULL)) EXECUTE FUNCTION take_event_position();
CREATE TRIGGER events_keep_what_they_are BEFORE UPDATE ON events FOR EACH ROW WHEN (((old.id IS DISTINCT FROM new.id) OR (old.project_id IS DISTINCT FROM new.project_id) OR (old.network IS DISTINCT FROM new.network) OR (old.type IS DISTINCT FROM new.type) OR (old.invoice_id IS DISTINCT FROM new.invoice_id) OR (old.transfer_id IS DISTINCT FROM new.transfer_id) OR (old.sequence IS DISTINCT FROM new.sequence) OR (old.body IS DISTINCT FROM new.body) OR (old.created_at IS DISTINCT FROM new.created_at) OR (old."position" IS DISTINCT FROM new."position"))) EXECUTE FUNCTION keep_columns('mac');
CREATE CONSTRAINT TRIGGER events_tell_of_their_invoice AFTER INSERT ON events DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (((new.invoice_id IS NOT NULL) AND (new.type ~~ 'invoice.%'::text))) EXECUTE FUNCTION prove_event();

-- Written by src/core/store/chain/cursor.ts
create table head_blocks (
  block_id bytea not null,
  block_time timestamp with time zone not null,
  network text not null,
  number bigint not null,
  constraint head_blocks_block_id_check CHECK ((octet_length(block_id) = 32)),
  constraint head_blocks_network_fkey FOREIGN KEY (network) REFERENCES chain_cursors(network),
  constraint head_blocks_number_check CHECK ((number > 0)),
  constraint head_blocks_pkey PRIMARY KEY (network, number)
);

-- Written by src/core/payments/inventory/list-rows.ts
create table inventory_pages (
  content bytea not null,
  id uuid not null,
  mac bytea,
  network text not null,
  number bigint not null,
  subject text not null,
  constraint inventory_pages_mac_check CHECK ((octet_length(mac) = 24)),
  constraint inventory_pages_network_subject_number_key UNIQUE (network, subject, number),
  constraint inventory_pages_number_check CHECK ((number > 0)),
  constraint inventory_pages_pkey PRIMARY KEY (id),
  constraint inventory_pages_subject_check CHECK ((subject = ANY (ARRAY['invoices'::text, 'transfers'::text, 'events'::text, 'settings'::text])))
);
CREATE TRIGGER inventory_pages_are_kept BEFORE DELETE OR TRUNCATE ON inventory_pages FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE TRIGGER inventory_pages_keep_what_they_are BEFORE UPDATE ON inventory_pages FOR EACH ROW EXECUTE FUNCTION keep_columns('content', 'mac');

-- Written by src/faces/operator/subjects/people.ts
-- Written by src/faces/operator/subjects/sign-in.ts
create table invitations (
  created_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  expires_at timestamp with time zone not null,
  kind text not null,
  mac bytea,
  person_id uuid not null,
  sha256 bytea not null,
  constraint invitations_check CHECK ((expires_at <= (created_at + '00:15:00'::interval))),
  constraint invitations_ended_at_bounds CHECK (((ended_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (ended_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint invitations_kind_check CHECK ((kind = ANY (ARRAY['invite'::text, 'reset'::text]))),
  constraint invitations_mac_check CHECK ((octet_length(mac) = 24)),
  constraint invitations_person_id_fkey FOREIGN KEY (person_id) REFERENCES people(id),
  constraint invitations_pkey PRIMARY KEY (sha256),
  constraint invitations_sha256_check CHECK ((octet_length(sha256) = 32))
);
CREATE UNIQUE INDEX invitations_person ON invitations USING btree (person_id) WHERE (ended_at IS NULL);
CREATE TRIGGER invitations_stay_ended BEFORE UPDATE ON invitations FOR EACH ROW WHEN ((old.ended_at IS NOT NULL)) EXECUTE FUNCTION keep_columns();

-- Written by src/core/payments/record-changes.ts
-- Written by src/core/store/db/database.ts
-- Written by src/core/store/ledger/invoice-creation.ts
-- Written by src/core/store/ledger/invoices.ts
create table invoices (
  address_id uuid not null,
  api_key_id uuid,
  checkout_token text not null,
  created_at timestamp with time zone not null,
  event_count integer not null default 0,
  expires_at timestamp with time zone not null,
  external_id text not null,
  id uuid not null,
  idempotency_key text not null,
  mac bytea,
  network text not null,
  options text,
  paid_mac bytea,
  paid_transfer_id uuid,
  payable_after timestamp with time zone,
  payable_micro bigint not null,
  project_id uuid not null,
  requested_micro bigint not null,
  status text not null default 'PENDING'::text,
  withdrawn_at timestamp with time zone,
  withdrawn_mac bytea,
  constraint invoices_check CHECK ((payable_micro >= requested_micro)),
  constraint invoices_checkout_token UNIQUE (checkout_token),
  constraint invoices_checkout_token_check CHECK (((char_length(checkout_token) >= 16) AND (char_length(checkout_token) <= 22))),
  constraint invoices_event_count_bounds CHECK (((event_count >= 0) AND (event_count <= 1000000))) NOT VALID,
  constraint invoices_event_count_check CHECK ((event_count >= 0)),
  constraint invoices_external_id UNIQUE (project_id, external_id),
  constraint invoices_external_id_check CHECK (((char_length(external_id) >= 1) AND (char_length(external_id) <= 200))),
  constraint invoices_idempotency_key UNIQUE (project_id, idempotency_key),
  constraint invoices_idempotency_key_check CHECK (((idempotency_key ~ '^[!-~]+$'::text) AND (char_length(idempotency_key) <= 255))) NOT VALID,
  constraint invoices_mac_check CHECK ((octet_length(mac) = 24)),
  constraint invoices_options_are_json CHECK ((jsonb_typeof((options)::jsonb) = 'object'::text)),
  constraint invoices_options_check CHECK (((char_length(options) >= 2) AND (char_length(options) <= 8192))),
  constraint invoices_paid_by_transfer CHECK (((status = 'PAID'::text) = (paid_transfer_id IS NOT NULL))),
  constraint invoices_paid_mac_check CHECK ((octet_length(paid_mac) = 24)),
  constraint invoices_paid_transfer_id_project_id_id_fkey FOREIGN KEY (paid_transfer_id, project_id, id) REFERENCES transfers(id, project_id, invoice_id) DEFERRABLE INITIALLY DEFERRED,
  constraint invoices_payable_after CHECK (isfinite(payable_after)) NOT VALID,
  constraint invoices_pkey PRIMARY KEY (project_id, id),
  constraint invoices_project_id_network_address_id_fkey FOREIGN KEY (project_id, network, address_id) REFERENCES addresses(project_id, network, id),
  constraint invoices_requested_micro_check CHECK ((requested_micro > 0)),
  constraint invoices_reservation UNIQUE (address_id, payable_micro),
  constraint invoices_status_check CHECK ((status = ANY (ARRAY['PENDING'::text, 'CONFIRMING'::text, 'EXPIRED'::text, 'PAID'::text]))),
  constraint invoices_withdrawn_at_bounds CHECK (((withdrawn_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (withdrawn_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint invoices_withdrawn_at_check CHECK (isfinite(withdrawn_at)),
  constraint invoices_withdrawn_mac_check CHECK ((octet_length(withdrawn_mac) = 24))
);
CREATE INDEX invoices_expiry ON invoices USING btree (network, expires_at) WHERE (status = 'PENDING'::text);
CREATE TRIGGER invoices_are_kept BEFORE DELETE OR TRUNCATE ON invoices FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE TRIGGER invoices_are_paid_by_what_stands BEFORE UPDATE ON invoices FOR EACH ROW WHEN (((old.status <> 'PAID'::text) AND (new.status = 'PAID'::text))) EXECUTE FUNCTION refuse_denied_payment();
CREATE CONSTRAINT TRIGGER invoices_begin_told AFTER INSERT ON invoices DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (((new.status <> 'PENDING'::text) OR (new.event_count <> 0))) EXECUTE FUNCTION prove_status();
CREATE TRIGGER invoices_go_forward BEFORE UPDATE ON invoices FOR EACH ROW WHEN ((new.event_count < old.event_count)) EXECUTE FUNCTION refuse_way_back('event_count');
CREATE CONSTRAINT TRIGGER invoices_have_told_their_status AFTER UPDATE ON invoices DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN ((new.status <> old.status)) EXECUTE FUNCTION prove_status();
CREATE TRIGGER invoices_keep_their_deadline BEFORE UPDATE ON invoices FOR EACH ROW WHEN (((old.network <> 'devnet'::text) AND (old.expires_at <> new.expires_at))) EXECUTE FUNCTION keep_columns('status', 'event_count', 'paid_transfer_id', 'mac', 'paid_mac');
CREATE TRIGGER invoices_keep_what_they_are BEFORE UPDATE ON invoices FOR EACH ROW WHEN (((old.id IS DISTINCT FROM new.id) OR (old.project_id IS DISTINCT FROM new.project_id) OR (old.network IS DISTINCT FROM new.network) OR (old.address_id IS DISTINCT FROM new.address_id) OR (old.idempotency_key IS DISTINCT FROM new.idempotency_key) OR (old.external_id IS DISTINCT FROM new.external_id) OR (old.requested_micro IS DISTINCT FROM new.requested_micro) OR (old.payable_micro IS DISTINCT FROM new.payable_micro) OR (old.checkout_token IS DISTINCT FROM new.checkout_token) OR (old.created_at IS DISTINCT FROM new.created_at) OR (old.api_key_id IS DISTINCT FROM new.api_key_id) OR (old.options IS DISTINCT FROM new.options) OR (old.payable_after IS DISTINCT FROM new.payable_after))) EXECUTE FUNCTION keep_columns('status', 'event_count', 'paid_transfer_id', 'expires_at', 'mac', 'paid_mac', 'withdrawn_at', 'withdrawn_mac');
-- disabled: CREATE TRIGGER invoices_of_a_closed_ledger BEFORE INSERT ON invoices FOR EACH STATEMENT EXECUTE FUNCTION refuse_new_invoices();
CREATE TRIGGER invoices_paid_is_final BEFORE UPDATE ON invoices FOR EACH ROW WHEN (((old.status = 'PAID'::text) AND ((new.status <> 'PAID'::text) OR (new.paid_transfer_id <> old.paid_transfer_id)))) EXECUTE FUNCTION keep_paid_invoices();
CREATE TRIGGER invoices_stay_withdrawn BEFORE UPDATE ON invoices FOR EACH ROW WHEN (((old.withdrawn_at IS NOT NULL) AND (new.withdrawn_at IS DISTINCT FROM old.withdrawn_at))) EXECUTE FUNCTION refuse_way_back('withdrawn_at');
CREATE TRIGGER invoices_tell_each_change BEFORE UPDATE ON invoices FOR EACH ROW WHEN (((new.event_count - old.event_count) <> ((new.status <> old.status))::integer)) EXECUTE FUNCTION refuse_untold_change();
CREATE TRIGGER invoices_tell_their_status AFTER UPDATE OF status ON invoices FOR EACH ROW WHEN ((old.status IS DISTINCT FROM new.status)) EXECUTE FUNCTION tell_invoice_status();
CREATE TRIGGER invoices_tell_their_withdrawal AFTER UPDATE OF withdrawn_at ON invoices FOR EACH ROW WHEN ((old.withdrawn_at IS DISTINCT FROM new.withdrawn_at)) EXECUTE FUNCTION tell_invoice_status();

-- Written by src/core/store/chain/leases.ts
create table leases (
  epoch bigint not null,
  expires_at timestamp with time zone not null,
  holder text not null,
  name text not null,
  constraint leases_epoch_bounds CHECK (((epoch >= '1'::bigint) AND (epoch <= '1000000000000000'::bigint))) NOT VALID,
  constraint leases_expires_at_bounds CHECK (((expires_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (expires_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint leases_pkey PRIMARY KEY (name)
);
CREATE TRIGGER leases_end_soon BEFORE INSERT OR UPDATE OF expires_at ON leases FOR EACH ROW EXECUTE FUNCTION refuse_later_than('expires_at', '10 minutes');
CREATE TRIGGER leases_epoch_rises BEFORE UPDATE ON leases FOR EACH ROW WHEN (((new.epoch <> old.epoch) AND (new.epoch <> (old.epoch + 1)) AND (NOT ((old.epoch = '1000000000000000'::bigint) AND (new.epoch = 1))))) EXECUTE FUNCTION refuse_value('epoch', 'it rises by 1');

-- Written by src/core/store/db/database.ts
-- Written by src/core/store/db/ledger-identity.ts
-- Written by src/faces/operator/backup/restore-backup.ts
create table ledger_identity (
  closed_at timestamp with time zone,
  database_oid bigint not null,
  first_index integer not null default 0,
  id uuid not null,
  is_only boolean not null default true,
  system_identifier text,
  taken_at timestamp with time zone not null default now(),
  timeline integer,
  constraint ledger_identity_database_oid_bounds CHECK (((database_oid >= '0'::bigint) AND (database_oid <= '4294967295'::bigint))) NOT VALID,
  constraint ledger_identity_first_index_check CHECK ((first_index >= 0)),
  constraint ledger_identity_is_only_check CHECK (is_only),
  constraint ledger_identity_pkey PRIMARY KEY (is_only),
  constraint ledger_identity_taken_at_bounds CHECK (((taken_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (taken_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint ledger_identity_timeline_bounds CHECK (((timeline >= 1) AND (timeline <= 2147483646))) NOT VALID
);
CREATE TRIGGER ledger_identity_goes_forward BEFORE UPDATE ON ledger_identity FOR EACH ROW WHEN ((new.first_index < old.first_index)) EXECUTE FUNCTION refuse_way_back('first_index');
CREATE TRIGGER ledger_identity_is_kept BEFORE DELETE OR TRUNCATE ON ledger_identity FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE TRIGGER ledger_identity_is_of_here BEFORE UPDATE ON ledger_identity FOR EACH ROW WHEN (((new.system_identifier IS DISTINCT FROM old.system_identifier) OR (new.database_oid <> old.database_oid) OR (new.timeline IS DISTINCT FROM old.timeline))) EXECUTE FUNCTION keep_identity();
CREATE TRIGGER ledger_identity_keeps_what_it_is BEFORE UPDATE ON ledger_identity FOR EACH ROW EXECUTE FUNCTION keep_columns('system_identifier', 'database_oid', 'timeline', 'taken_at', 'closed_at', 'first_index');
CREATE TRIGGER ledger_identity_stays_closed BEFORE UPDATE ON ledger_identity FOR EACH ROW WHEN (((old.closed_at IS NOT NULL) AND (new.closed_at IS DISTINCT FROM old.closed_at))) EXECUTE FUNCTION refuse_way_back('closed_at');

-- Written by src/core/store/db/ledger-identity.ts
create table ledger_proofs (
  key_id text not null,
  mac bytea not null,
  proven_at timestamp with time zone not null default now(),
  constraint ledger_proofs_key_id_check CHECK ((key_id ~ '^[0-9a-f]{16}$'::text)),
  constraint ledger_proofs_mac_check CHECK ((octet_length(mac) = 24)),
  constraint ledger_proofs_pkey PRIMARY KEY (key_id)
);
CREATE TRIGGER ledger_proofs_are_kept BEFORE DELETE OR TRUNCATE ON ledger_proofs FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE TRIGGER ledger_proofs_keep_what_they_are BEFORE UPDATE ON ledger_proofs FOR EACH ROW EXECUTE FUNCTION keep_columns('mac');

-- Written by src/faces/operator/subjects/projects.ts
create table logos (
  content bytea not null,
  created_at timestamp with time zone not null default now(),
  id text not null,
  type text not null,
  constraint logos_content_check CHECK (((octet_length(content) >= 1) AND (octet_length(content) <= 32768))),
  constraint logos_id_check CHECK ((id ~ '^[0-9a-f]{32}$'::text)),
  constraint logos_pkey PRIMARY KEY (id),
  constraint logos_type_check CHECK ((type = ANY (ARRAY['image/png'::text, 'image/jpeg'::text, 'image/webp'::text])))
);
CREATE TRIGGER logos_are_kept BEFORE UPDATE ON logos FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();

-- Written by src/core/store/outbox/notifications.ts
create table notifications (
  about text not null,
  body text not null,
  channel_id uuid not null,
  claimed_until timestamp with time zone,
  created_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  id uuid not null,
  is_urgent boolean not null,
  mac bytea,
  phase text not null,
  status text not null default 'waiting'::text,
  title text not null,
  constraint notifications_about_check CHECK (((char_length(about) >= 1) AND (char_length(about) <= 100))),
  constraint notifications_body_check CHECK ((char_length(body) <= 3000)),
  constraint notifications_channel_id_fkey FOREIGN KEY (channel_id) REFERENCES notify_channels(id),
  constraint notifications_claimed_until_bounds CHECK (((claimed_until >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (claimed_until <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint notifications_end CHECK (((status = 'waiting'::text) = (ended_at IS NULL))),
  constraint notifications_ended_at_bounds CHECK (((ended_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (ended_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint notifications_mac_check CHECK ((octet_length(mac) = 24)),
  constraint notifications_once UNIQUE (channel_id, about, phase),
  constraint notifications_phase_check CHECK ((phase = ANY (ARRAY['raised'::text, 'over'::text]))),
  constraint notifications_pkey PRIMARY KEY (id),
  constraint notifications_status_check CHECK ((status = ANY (ARRAY['waiting'::text, 'sent'::text, 'given-up'::text]))),
  constraint notifications_title_check CHECK (((char_length(title) >= 1) AND (char_length(title) <= 200)))
);
CREATE INDEX notifications_ended ON notifications USING btree (ended_at) WHERE (status <> 'waiting'::text);
CREATE INDEX notifications_waiting ON notifications USING btree (channel_id, id) WHERE (status = 'waiting'::text);
CREATE TRIGGER notifications_keep_what_they_are BEFORE UPDATE ON notifications FOR EACH ROW EXECUTE FUNCTION keep_columns('status', 'claimed_until', 'ended_at', 'mac');

-- Written by src/core/store/outbox/notify-channels.ts
create table notify_channels (
  created_at timestamp with time zone not null,
  due_at timestamp with time zone,
  failing_since timestamp with time zone,
  failures integer not null default 0,
  id uuid not null,
  kind text not null,
  last_error text,
  last_sent_at timestamp with time zone,
  mac bytea,
  master_key_id text not null,
  name text not null,
  quiet_from integer,
  quiet_to integer,
  removed_at timestamp with time zone,
  sealed bytea not null,
  shown text not null,
  summary_at integer,
  time_zone text not null,
  constraint notify_channels_due_at_bounds CHECK (((due_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (due_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint notify_channels_failing_since_bounds CHECK (((failing_since >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (failing_since <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint notify_channels_failures_bounds CHECK (((failures >= 0) AND (failures <= 1000000))) NOT VALID,
  constraint notify_channels_failures_check CHECK ((failures >= 0)),
  constraint notify_channels_finite CHECK ((isfinite(created_at) AND isfinite(removed_at) AND isfinite(due_at))) NOT VALID,
  constraint notify_channels_kind_check CHECK ((kind = ANY (ARRAY['email'::text, 'telegram'::text, 'slack'::text, 'discord'::text, 'ntfy'::text, 'webhook'::text]))),
  constraint notify_channels_last_error_check CHECK ((char_length(last_error) <= 500)),
  constraint notify_channels_last_sent_at_bounds CHECK (((last_sent_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (last_sent_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint notify_channels_mac_check CHECK ((octet_length(mac) = 24)),
  constraint notify_channels_master_key_id_check CHECK ((master_key_id ~ '^[0-9a-f]{16}$'::text)),
  constraint notify_channels_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 100))),
  constraint notify_channels_pkey PRIMARY KEY (id),
  constraint notify_channels_quiet CHECK (((((quiet_from IS NULL) = (quiet_to IS NULL)) AND (quiet_from IS DISTINCT FROM quiet_to)) OR (num_nonnulls(quiet_from, quiet_to) = 0))),
  constraint notify_channels_quiet_from_check CHECK (((quiet_from >= 0) AND (quiet_from <= 1439))),
  constraint notify_channels_quiet_to_check CHECK (((quiet_to >= 0) AND (quiet_to <= 1439))),
  constraint notify_channels_removed CHECK (((removed_at IS NULL) = (octet_length(sealed) > 0))),
  constraint notify_channels_removed_at_bounds CHECK (((removed_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (removed_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint notify_channels_sealed_check CHECK ((octet_length(sealed) <= 8192)),
  constraint notify_channels_shown_check CHECK (((char_length(shown) >= 1) AND (char_length(shown) <= 300))),
  constraint notify_channels_summary_at_check CHECK (((summary_at >= 0) AND (summary_at <= 1439))),
  constraint notify_channels_time_zone_check CHECK (((char_length(time_zone) >= 1) AND (char_length(time_zone) <= 100)))
);
CREATE UNIQUE INDEX notify_channels_name ON notify_channels USING btree (name) WHERE (removed_at IS NULL);
CREATE TRIGGER notify_channels_are_kept BEFORE DELETE OR TRUNCATE ON notify_channels FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE TRIGGER notify_channels_keep_what_they_are BEFORE UPDATE ON notify_channels FOR EACH ROW EXECUTE FUNCTION keep_columns('master_key_id', 'sealed', 'removed_at', 'failing_since', 'failures', 'due_at', 'last_error', 'last_sent_at', 'mac');
CREATE TRIGGER notify_channels_stay_removed BEFORE UPDATE ON notify_channels FOR EACH ROW WHEN (((old.removed_at IS NOT NULL) AND (new.removed_at IS DISTINCT FROM old.removed_at))) EXECUTE FUNCTION refuse_way_back('removed_at');

-- Written by src/core/store/access/audit-log.ts
create table operator_actions (
  acted_at timestamp with time zone not null,
  acted_by text not null,
  action text not null,
  actor_id uuid,
  actor_kind text not null default 'cli'::text,
  detail jsonb not null,
  hash bytea not null,
  id bigint not null generated always as identity,
  mac bytea,
  origin text,
  project_id uuid,
  request_id text,
  seq bigint not null,
  subject text not null,
  constraint operator_actions_acted_by_check CHECK (((char_length(acted_by) >= 1) AND (char_length(acted_by) <= 200))),
  constraint operator_actions_action_check CHECK (((action ~ '^[a-z]+(-[a-z]+)*\.[a-z]+(-[a-z]+)*$'::text) AND (char_length(action) <= 60))),
  constraint operator_actions_actor_kind_check CHECK ((actor_kind = ANY (ARRAY['cli'::text, 'console'::text, 'admin'::text, 'service'::text, 'key'::text]))) NOT VALID,
  constraint operator_actions_detail_check CHECK ((jsonb_typeof(detail) = 'object'::text)),
  constraint operator_actions_finite CHECK (isfinite(acted_at)) NOT VALID,
  constraint operator_actions_hash_check CHECK ((octet_length(hash) = 32)),
  constraint operator_actions_mac_check CHECK ((octet_length(mac) = 24)),
  constraint operator_actions_origin_check CHECK (((char_length(origin) >= 1) AND (char_length(origin) <= 200))),
  constraint operator_actions_pkey PRIMARY KEY (id),
  constraint operator_actions_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id),
  constraint operator_actions_request_id_check CHECK (((char_length(request_id) >= 1) AND (char_length(request_id) <= 200))),
  constraint operator_actions_seq UNIQUE (seq),
  constraint operator_actions_subject_check CHECK (((char_length(subject) >= 1) AND (char_length(subject) <= 200)))
);
CREATE INDEX operator_actions_access ON operator_actions USING btree (acted_at) WHERE (action = ANY (ARRAY['admin-key.created'::text, 'user.invited'::text, 'user.changed'::text, 'user.reset'::text]));
CREATE INDEX operator_actions_subject ON operator_actions USING btree (subject, id);
CREATE TRIGGER operator_actions_are_chained BEFORE INSERT ON operator_actions FOR EACH ROW WHEN (((new.seq IS NULL) OR (new.hash IS NULL))) EXECUTE FUNCTION chain_operator_action();
CREATE TRIGGER operator_actions_are_kept BEFORE DELETE OR TRUNCATE ON operator_actions FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE TRIGGER operator_actions_keep_what_they_are BEFORE UPDATE ON operator_actions FOR EACH ROW EXECUTE FUNCTION keep_columns('mac');

-- Written by src/faces/operator/subjects/chain-repair.ts
create table outgoing_annulments (
  annulled_at timestamp with time zone not null,
  annulled_by text not null,
  correction integer not null,
  denied_by bytea not null,
  log_index integer not null,
  network text not null,
  reason text not null,
  tx_id bytea not null,
  constraint outgoing_annulments_annulled_by_check CHECK (((char_length(annulled_by) >= 1) AND (char_length(annulled_by) <= 200))),
  constraint outgoing_annulments_denied_by_check CHECK ((octet_length(denied_by) = 32)),
  constraint outgoing_annulments_pkey PRIMARY KEY (network, tx_id, log_index, correction),
  constraint outgoing_annulments_reason_check CHECK (((char_length(reason) >= 1) AND (char_length(reason) <= 2000)))
);
CREATE TRIGGER outgoing_annulments_are_kept BEFORE DELETE OR UPDATE OR TRUNCATE ON outgoing_annulments FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();

-- Written by src/core/payments/record-transfers.ts
create table outgoing_corrections (
  address_id uuid not null,
  amount_micro numeric(78,0) not null,
  block_id bytea not null,
  block_number bigint not null,
  block_time timestamp with time zone not null,
  correction integer not null default 0,
  log_index integer not null,
  mac bytea,
  network text not null,
  nodes text[] not null,
  project_id uuid not null,
  recorded_at timestamp with time zone not null default now(),
  to_address text not null,
  tx_id bytea not null,
  verified text not null,
  constraint outgoing_corrections_further CHECK ((correction > 0)),
  constraint outgoing_corrections_pkey PRIMARY KEY (network, tx_id, log_index, correction),
  constraint outgoing_corrections_project_id_network_address_id_fkey FOREIGN KEY (project_id, network, address_id) REFERENCES addresses(project_id, network, id),
  constraint outgoing_transfers_amount_micro_check CHECK ((amount_micro > (0)::numeric)),
  constraint outgoing_transfers_block_id_check CHECK ((octet_length(block_id) = 32)),
  constraint outgoing_transfers_block_number_check CHECK ((block_number >= 0)),
  constraint outgoing_transfers_finite CHECK ((isfinite(block_time) AND (amount_micro <> 'NaN'::numeric))) NOT VALID,
  constraint outgoing_transfers_log_index_check CHECK ((log_index >= 0)),
  constraint outgoing_transfers_mac_check CHECK ((octet_length(mac) = 24)),
  constraint outgoing_transfers_tx_id_check CHECK ((octet_length(tx_id) = 32)),
  constraint outgoing_transfers_verified_check CHECK ((verified ~ '^(proven|agreed:[0-9]{1,2}|single-node)$'::text))
);
CREATE INDEX outgoing_corrections_address ON outgoing_corrections USING btree (address_id, block_number);
CREATE INDEX outgoing_corrections_project ON outgoing_corrections USING btree (project_id, block_number, tx_id, log_index);
CREATE TRIGGER outgoing_corrections_are_kept BEFORE DELETE OR TRUNCATE ON outgoing_corrections FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE CONSTRAINT TRIGGER outgoing_corrections_follow_annulled_ones AFTER INSERT ON outgoing_corrections DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION follow_annulled();
CREATE TRIGGER outgoing_corrections_keep_what_they_are BEFORE UPDATE ON outgoing_corrections FOR EACH ROW EXECUTE FUNCTION keep_columns('mac');

-- Written by src/core/payments/record-transfers.ts
create table outgoing_transfers (
  address_id uuid not null,
  amount_micro numeric(78,0) not null,
  block_id bytea not null,
  block_number bigint not null,
  block_time timestamp with time zone not null,
  correction integer not null default 0,
  log_index integer not null,
  mac bytea,
  network text not null,
  nodes text[] not null,
  project_id uuid not null,
  recorded_at timestamp with time zone not null default now(),
  to_address text not null,
  tx_id bytea not null,
  verified text not null,
  constraint outgoing_transfers_amount_micro_check CHECK ((amount_micro > (0)::numeric)),
  constraint outgoing_transfers_block_id_check CHECK ((octet_length(block_id) = 32)),
  constraint outgoing_transfers_block_number_check CHECK ((block_number >= 0)),
  constraint outgoing_transfers_finite CHECK ((isfinite(block_time) AND (amount_micro <> 'NaN'::numeric))) NOT VALID,
  constraint outgoing_transfers_first CHECK ((correction = 0)) NO INHERIT,
  constraint outgoing_transfers_log_index_check CHECK ((log_index >= 0)),
  constraint outgoing_transfers_mac_check CHECK ((octet_length(mac) = 24)),
  constraint outgoing_transfers_pkey PRIMARY KEY (network, tx_id, log_index),
  constraint outgoing_transfers_project_id_network_address_id_fkey FOREIGN KEY (project_id, network, address_id) REFERENCES addresses(project_id, network, id),
  constraint outgoing_transfers_tx_id_check CHECK ((octet_length(tx_id) = 32)),
  constraint outgoing_transfers_verified_check CHECK ((verified ~ '^(proven|agreed:[0-9]{1,2}|single-node)$'::text))
);
CREATE INDEX outgoing_transfers_address ON outgoing_transfers USING btree (address_id, block_number);
CREATE INDEX outgoing_transfers_project ON outgoing_transfers USING btree (project_id, block_number, tx_id, log_index);
CREATE INDEX outgoing_transfers_recipient ON outgoing_transfers USING btree (project_id, to_address);
CREATE INDEX outgoing_transfers_recipient_ends ON outgoing_transfers USING btree (project_id, "left"(to_address, 4), "right"(to_address, 4), block_time);
CREATE TRIGGER outgoing_transfers_are_kept BEFORE DELETE OR TRUNCATE ON outgoing_transfers FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE TRIGGER outgoing_transfers_keep_what_they_are BEFORE UPDATE ON outgoing_transfers FOR EACH ROW EXECUTE FUNCTION keep_columns('mac');

-- Written by src/core/store/chain/passed-blocks.ts
create table passed_blocks (
  block_id bytea not null,
  digest bytea not null,
  id bigint not null generated always as identity,
  mac bytea,
  network text not null,
  number bigint not null,
  passed_at timestamp with time zone not null,
  passed_by text not null,
  reason text not null,
  constraint passed_blocks_block_id_check CHECK ((octet_length(block_id) = 32)),
  constraint passed_blocks_digest_check CHECK ((octet_length(digest) = 32)),
  constraint passed_blocks_mac_check CHECK ((octet_length(mac) = 24)),
  constraint passed_blocks_network_check CHECK ((network = ANY (ARRAY['mainnet'::text, 'nile'::text, 'devnet'::text]))),
  constraint passed_blocks_number_check CHECK ((number > 0)),
  constraint passed_blocks_once UNIQUE (network, number, digest),
  constraint passed_blocks_passed_by_check CHECK (((char_length(passed_by) >= 1) AND (char_length(passed_by) <= 200))),
  constraint passed_blocks_pkey PRIMARY KEY (id),
  constraint passed_blocks_reason_check CHECK (((char_length(reason) >= 1) AND (char_length(reason) <= 2000)))
);
CREATE TRIGGER passed_blocks_are_kept BEFORE DELETE OR TRUNCATE ON passed_blocks FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE TRIGGER passed_blocks_keep_what_they_are BEFORE UPDATE ON passed_blocks FOR EACH ROW EXECUTE FUNCTION keep_columns('mac');

-- Written by src/faces/operator/subjects/passkeys.ts
-- Written by src/faces/operator/subjects/people.ts
create table passkeys (
  counter bigint not null,
  created_at timestamp with time zone not null,
  id bytea not null,
  last_used_at timestamp with time zone,
  mac bytea,
  name text not null,
  person_id uuid not null,
  public_key bytea not null,
  removed_at timestamp with time zone,
  transports text[] not null,
  constraint passkeys_counter_bounds CHECK (((counter >= '0'::bigint) AND (counter <= '4294967295'::bigint))) NOT VALID,
  constraint passkeys_counter_check CHECK (((counter >= 0) AND (counter <= '4294967295'::bigint))),
  constraint passkeys_id_check CHECK (((octet_length(id) >= 16) AND (octet_length(id) <= 1023))),
  constraint passkeys_last_used_at_bounds CHECK (((last_used_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (last_used_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint passkeys_mac_check CHECK ((octet_length(mac) = 24)),
  constraint passkeys_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 100))),
  constraint passkeys_person_id_fkey FOREIGN KEY (person_id) REFERENCES people(id),
  constraint passkeys_pkey PRIMARY KEY (id),
  constraint passkeys_public_key_check CHECK (((octet_length(public_key) >= 1) AND (octet_length(public_key) <= 4096))),
  constraint passkeys_removed_at_bounds CHECK (((removed_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (removed_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint passkeys_transports_check CHECK ((cardinality(transports) <= 10))
);
CREATE INDEX passkeys_person ON passkeys USING btree (person_id);
CREATE TRIGGER passkeys_are_kept BEFORE DELETE OR TRUNCATE ON passkeys FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE TRIGGER passkeys_go_forward BEFORE UPDATE ON passkeys FOR EACH ROW WHEN ((new.counter < old.counter)) EXECUTE FUNCTION refuse_way_back('counter');
CREATE TRIGGER passkeys_keep_what_they_are BEFORE UPDATE ON passkeys FOR EACH ROW EXECUTE FUNCTION keep_columns('counter', 'last_used_at', 'removed_at', 'mac');
CREATE TRIGGER passkeys_stay_removed BEFORE UPDATE ON passkeys FOR EACH ROW WHEN ((old.removed_at IS NOT NULL)) EXECUTE FUNCTION keep_columns();

-- Written by src/faces/operator/subjects/people.ts
-- Written by src/faces/operator/subjects/sign-in.ts
-- Written by src/faces/operator/subjects/totp.ts
create table people (
  created_at timestamp with time zone not null,
  id uuid not null,
  login text not null,
  mac bytea,
  master_key_id text,
  missed_at timestamp with time zone,
  misses integer not null default 0,
  name text not null,
  password_hash text,
  projects uuid[],
  removed_at timestamp with time zone,
  role text not null,
  totp_sealed bytea,
  totp_step bigint,
  constraint people_login_check CHECK (((login ~ '^[a-z0-9][a-z0-9._+@-]*$'::text) AND (char_length(login) <= 100))),
  constraint people_mac_check CHECK ((octet_length(mac) = 24)),
  constraint people_missed_at_bounds CHECK (((missed_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (missed_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint people_misses_bounds CHECK (((misses >= 0) AND (misses <= 1000))) NOT VALID,
  constraint people_misses_check CHECK ((misses >= 0)),
  constraint people_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 100))),
  constraint people_owners_see_all CHECK (((role <> 'owner'::text) OR (projects IS NULL))),
  constraint people_password_hash_check CHECK (((char_length(password_hash) >= 1) AND (char_length(password_hash) <= 200))),
  constraint people_password_needs_totp CHECK (((password_hash IS NULL) = (totp_sealed IS NULL))),
  constraint people_pkey PRIMARY KEY (id),
  constraint people_projects_check CHECK (((cardinality(projects) >= 1) AND (cardinality(projects) <= 1000))),
  constraint people_removed_at_bounds CHECK (((removed_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (removed_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint people_removed_have_nothing CHECK (((removed_at IS NULL) OR ((password_hash IS NULL) AND (totp_sealed IS NULL)))),
  constraint people_role_check CHECK ((role = ANY (ARRAY['viewer'::text, 'operator'::text, 'owner'::text]))),
  constraint people_totp CHECK (((master_key_id IS NULL) = (totp_sealed IS NULL))),
  constraint people_totp_sealed_check CHECK (((octet_length(totp_sealed) >= 1) AND (octet_length(totp_sealed) <= 200))),
  constraint people_totp_step_bounds CHECK (((totp_step >= '0'::bigint) AND (totp_step <= '1000000000'::bigint))) NOT VALID,
  constraint people_totp_step_check CHECK ((totp_step >= 0))
);
CREATE UNIQUE INDEX people_login ON people USING btree (login) WHERE (removed_at IS NULL);
CREATE TRIGGER people_are_kept BEFORE DELETE OR TRUNCATE ON people FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE TRIGGER people_have_an_owner BEFORE UPDATE ON people FOR EACH ROW WHEN (((old.role = 'owner'::text) AND (old.removed_at IS NULL) AND ((new.role <> 'owner'::text) OR (new.removed_at IS NOT NULL)))) EXECUTE FUNCTION keep_an_owner();
CREATE TRIGGER people_keep_what_they_are BEFORE UPDATE ON people FOR EACH ROW EXECUTE FUNCTION keep_columns('role', 'projects', 'removed_at', 'password_hash', 'master_key_id', 'totp_sealed', 'totp_step', 'misses', 'missed_at', 'mac');
CREATE TRIGGER people_stay_removed BEFORE UPDATE ON people FOR EACH ROW WHEN ((old.removed_at IS NOT NULL)) EXECUTE FUNCTION keep_columns();
CREATE TRIGGER people_take_no_code_again BEFORE UPDATE ON people FOR EACH ROW WHEN (((new.totp_sealed = old.totp_sealed) AND (new.totp_step < old.totp_step))) EXECUTE FUNCTION refuse_way_back('totp_step');

-- Written by src/core/store/chain/producer-sets.ts
create table producer_confirmations (
  confirmed_at timestamp with time zone not null,
  network text not null,
  constraint producer_confirmations_confirmed_at_bounds CHECK (((confirmed_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (confirmed_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint producer_confirmations_pkey PRIMARY KEY (network)
);

-- Written by src/core/store/chain/producer-sets.ts
create table producer_sets (
  adopted_at timestamp with time zone not null default now(),
  chain_time timestamp with time zone not null,
  id bigint not null generated always as identity,
  mac bytea,
  network text not null,
  nodes text[] not null,
  producers jsonb not null,
  reason text not null,
  replaced_after timestamp with time zone not null,
  constraint producer_sets_finite CHECK (isfinite(chain_time)) NOT VALID,
  constraint producer_sets_mac_check CHECK ((octet_length(mac) = 24)),
  constraint producer_sets_pkey PRIMARY KEY (id),
  constraint producer_sets_producers_check CHECK ((jsonb_typeof(producers) = 'array'::text)),
  constraint producer_sets_reason_check CHECK ((reason = ANY (ARRAY['first'::text, 'vote'::text, 'key'::text, 'operator'::text])))
);
CREATE INDEX producer_sets_newest ON producer_sets USING btree (network, id DESC);
CREATE TRIGGER producer_sets_are_kept BEFORE DELETE OR TRUNCATE ON producer_sets FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE TRIGGER producer_sets_keep_what_they_are BEFORE UPDATE ON producer_sets FOR EACH ROW EXECUTE FUNCTION keep_columns('mac');

-- Written by src/core/store/ledger/projects.ts
create table projects (
  accent text,
  allocation_epoch integer not null default 0,
  archived_at timestamp with time zone,
  created_at timestamp with time zone not null default now(),
  embed_origins text,
  id uuid not null,
  invoice_lifetime_ms bigint not null default 1800000,
  limits_mac bytea,
  logo_id text,
  mac bytea,
  max_surcharge_micro bigint not null default 10000,
  max_unpaid integer default 600,
  max_unpaid_per_minute integer default 120,
  name text not null,
  network text not null,
  policy text not null default 'tail'::text,
  return_url text,
  support_contact text,
  constraint projects_accent_check CHECK ((accent ~ '^#[0-9a-f]{6}$'::text)),
  constraint projects_archived_at_bounds CHECK (((archived_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (archived_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint projects_embed_origins_check CHECK (((char_length(embed_origins) <= 1000) AND (embed_origins ~ '^https?://[a-z0-9.-]+(:[0-9]{1,5})?( https?://[a-z0-9.-]+(:[0-9]{1,5})?){0,4}$'::text))),
  constraint projects_finite CHECK (isfinite(archived_at)) NOT VALID,
  constraint projects_id_network_key UNIQUE (id, network),
  constraint projects_invoice_lifetime_ms_check CHECK (((invoice_lifetime_ms >= 300000) AND (invoice_lifetime_ms <= '2592000000'::bigint))),
  constraint projects_limits_mac_check CHECK ((octet_length(limits_mac) = 24)),
  constraint projects_logo_id_fkey FOREIGN KEY (logo_id) REFERENCES logos(id),
  constraint projects_mac_check CHECK ((octet_length(mac) = 24)),
  constraint projects_max_surcharge_micro_check CHECK (((max_surcharge_micro >= 100) AND (max_surcharge_micro <= 1000000))),
  constraint projects_max_unpaid_bounds CHECK (((max_unpaid >= 1) AND (max_unpaid <= 1000000000))) NOT VALID,
  constraint projects_max_unpaid_check CHECK ((max_unpaid > 0)),
  constraint projects_max_unpaid_per_minute_bounds CHECK (((max_unpaid_per_minute >= 1) AND (max_unpaid_per_minute <= 1000000000))) NOT VALID,
  constraint projects_max_unpaid_per_minute_check CHECK ((max_unpaid_per_minute > 0)),
  constraint projects_name_check CHECK (((char_length(name) >= 1) AND (char_length(name) <= 100))),
  constraint projects_network_check CHECK ((network = ANY (ARRAY['mainnet'::text, 'nile'::text, 'devnet'::text]))),
  constraint projects_pkey PRIMARY KEY (id),
  constraint projects_policy_check CHECK ((policy = ANY (ARRAY['tail'::text, 'tail-4'::text, 'tail-3'::text, 'exact'::text]))),
  constraint projects_return_url_check CHECK (((char_length(return_url) >= 1) AND (char_length(return_url) <= 2048))),
  constraint projects_support_contact_check CHECK (((char_length(support_contact) >= 1) AND (char_length(support_contact) <= 200))),
  constraint projects_surcharge_holds_words CHECK ((max_surcharge_micro >=
CASE policy
    WHEN 'tail-4'::text THEN 10000
    WHEN 'tail-3'::text THEN 100000
    ELSE 100
END))
);
CREATE TRIGGER projects_are_kept BEFORE DELETE OR TRUNCATE ON projects FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE TRIGGER projects_keep_what_they_are BEFORE UPDATE ON projects FOR EACH ROW EXECUTE FUNCTION keep_columns('name', 'policy', 'max_surcharge_micro', 'invoice_lifetime_ms', 'allocation_epoch', 'support_contact', 'return_url', 'embed_origins', 'accent', 'logo_id', 'max_unpaid', 'max_unpaid_per_minute', 'archived_at', 'mac', 'limits_mac');

-- Written by src/core/store/access/receipt-keys.ts
-- Written by src/faces/operator/subjects/receipts.ts
create table receipt_keys (
  created_at timestamp with time zone not null,
  id text not null,
  mac bytea,
  master_key_id text,
  public_key bytea not null,
  retired_at timestamp with time zone,
  sealed bytea,
  constraint receipt_keys_id_check CHECK ((id ~ '^[A-Za-z0-9_-]{43}$'::text)),
  constraint receipt_keys_mac_check CHECK ((octet_length(mac) = 24)),
  constraint receipt_keys_master_key_id_check CHECK ((master_key_id ~ '^[0-9a-f]{16}$'::text)),
  constraint receipt_keys_pkey PRIMARY KEY (id),
  constraint receipt_keys_public_key_check CHECK ((octet_length(public_key) = 32)),
  constraint receipt_keys_public_key_key UNIQUE (public_key),
  constraint receipt_keys_retired_at_bounds CHECK (((retired_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (retired_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint receipt_keys_sealed CHECK (((sealed IS NULL) = (master_key_id IS NULL))),
  constraint receipt_keys_sealed_check CHECK ((octet_length(sealed) = 60)),
  constraint receipt_keys_signs CHECK (((retired_at IS NOT NULL) OR (sealed IS NOT NULL)))
);
CREATE UNIQUE INDEX receipt_keys_current ON receipt_keys USING btree ((true)) WHERE (retired_at IS NULL);
CREATE TRIGGER receipt_keys_are_kept BEFORE DELETE OR TRUNCATE ON receipt_keys FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE TRIGGER receipt_keys_keep_what_they_are BEFORE UPDATE ON receipt_keys FOR EACH ROW EXECUTE FUNCTION keep_columns('master_key_id', 'sealed', 'retired_at', 'mac');
CREATE TRIGGER receipt_keys_stay_retired BEFORE UPDATE ON receipt_keys FOR EACH ROW WHEN (((old.retired_at IS NOT NULL) AND (new.retired_at IS NULL))) EXECUTE FUNCTION refuse_way_back('retired_at');

-- Written by src/faces/operator/subjects/people.ts
-- Written by src/faces/operator/subjects/sign-in.ts
create table recovery_codes (
  created_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  mac bytea,
  person_id uuid not null,
  sha256 bytea not null,
  constraint recovery_codes_ended_at_bounds CHECK (((ended_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (ended_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint recovery_codes_mac_check CHECK ((octet_length(mac) = 24)),
  constraint recovery_codes_person_id_fkey FOREIGN KEY (person_id) REFERENCES people(id),
  constraint recovery_codes_pkey PRIMARY KEY (sha256),
  constraint recovery_codes_sha256_check CHECK ((octet_length(sha256) = 32))
);
CREATE INDEX recovery_codes_person ON recovery_codes USING btree (person_id) WHERE (ended_at IS NULL);
CREATE TRIGGER recovery_codes_are_kept BEFORE DELETE OR TRUNCATE ON recovery_codes FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE TRIGGER recovery_codes_keep_what_they_are BEFORE UPDATE ON recovery_codes FOR EACH ROW EXECUTE FUNCTION keep_columns('ended_at', 'mac');
CREATE TRIGGER recovery_codes_stay_ended BEFORE UPDATE ON recovery_codes FOR EACH ROW WHEN ((old.ended_at IS NOT NULL)) EXECUTE FUNCTION keep_columns();

-- Written by src/core/payments/measure-capacity.ts
create table refused_amounts (
  project_id uuid not null,
  refused_at timestamp with time zone not null,
  requested_micro bigint not null,
  constraint refused_amounts_pkey PRIMARY KEY (project_id, requested_micro),
  constraint refused_amounts_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id),
  constraint refused_amounts_refused_at_bounds CHECK (((refused_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (refused_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint refused_amounts_requested_micro_check CHECK ((requested_micro > 0))
);
CREATE INDEX refused_amounts_latest ON refused_amounts USING btree (project_id, refused_at);

-- Written by src/core/store/access/requests.ts
create table requests (
  at timestamp with time zone not null,
  count integer not null,
  first_id text collate C not null,
  key_id uuid,
  last_id text collate C not null,
  project_id uuid not null,
  requests text not null,
  slot smallint not null,
  constraint requests_check CHECK (((first_id ~ '^req_[0-9a-hjkmnp-tv-z]{26}$'::text) AND (last_id >= first_id))),
  constraint requests_check1 CHECK ((slot = (((EXTRACT(epoch FROM at))::bigint / 604800) % (6)::bigint))),
  constraint requests_count_check CHECK (((count >= 1) AND (count <= 1000))),
  constraint requests_pkey PRIMARY KEY (at, first_id, slot)
);
CREATE INDEX requests_project ON ONLY requests USING btree (project_id, at);

-- Written by src/core/store/db/migrate.ts
create table schema_migrations (
  applied_at timestamp with time zone not null default now(),
  name text not null,
  sha256 text not null,
  version integer not null,
  constraint schema_migrations_pkey PRIMARY KEY (version)
);

-- Written by src/faces/operator/subjects/people.ts
-- Written by src/faces/operator/subjects/sessions.ts
create table sessions (
  client_network text not null,
  created_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  id uuid not null,
  mac bytea,
  origin text not null,
  person_id uuid not null,
  proof text not null,
  seen_at timestamp with time zone not null,
  sha256 bytea not null,
  stepped_up_at timestamp with time zone,
  user_agent text,
  constraint sessions_client_network_length CHECK (((char_length(client_network) >= 1) AND (char_length(client_network) <= 200))),
  constraint sessions_ended_at_bounds CHECK (((ended_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (ended_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint sessions_mac_check CHECK ((octet_length(mac) = 24)),
  constraint sessions_origin_check CHECK (((char_length(origin) >= 1) AND (char_length(origin) <= 200))),
  constraint sessions_person_id_fkey FOREIGN KEY (person_id) REFERENCES people(id),
  constraint sessions_pkey PRIMARY KEY (id),
  constraint sessions_proof_check CHECK ((proof = ANY (ARRAY['passkey'::text, 'totp'::text, 'recovery-code'::text]))),
  constraint sessions_seen_at_bounds CHECK (((seen_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (seen_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint sessions_sha256_check CHECK ((octet_length(sha256) = 32)),
  constraint sessions_sha256_key UNIQUE (sha256),
  constraint sessions_stepped_up_at_bounds CHECK (((stepped_up_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (stepped_up_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint sessions_user_agent_check CHECK ((char_length(user_agent) <= 200))
);
CREATE INDEX sessions_created ON sessions USING btree (created_at);
CREATE INDEX sessions_person ON sessions USING btree (person_id, created_at);
CREATE TRIGGER sessions_stay_ended BEFORE UPDATE ON sessions FOR EACH ROW WHEN ((old.ended_at IS NOT NULL)) EXECUTE FUNCTION keep_columns();

-- Written by src/core/store/chain/set-aside.ts
create table set_aside (
  account bytea,
  amount_micro numeric,
  content text not null,
  due_at timestamp with time zone not null default now(),
  id text not null,
  mac bytea,
  network text not null,
  reason text not null,
  set_aside_at timestamp with time zone not null default now(),
  tries integer not null default 0,
  constraint set_aside_account_check CHECK ((octet_length(account) = 20)),
  constraint set_aside_amount_micro_check CHECK (((amount_micro >= (0)::numeric) AND (amount_micro <= '100000000000000000000000000000000000000000000000000000000000000000000000000000000'::numeric))),
  constraint set_aside_check CHECK (((account IS NULL) = (amount_micro IS NULL))),
  constraint set_aside_content_check CHECK (((char_length(content) >= 2) AND (char_length(content) <= 20000))),
  constraint set_aside_due_at_check CHECK (((due_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (due_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))),
  constraint set_aside_id_check CHECK (((char_length(id) >= 1) AND (char_length(id) <= 200))),
  constraint set_aside_mac_check CHECK ((octet_length(mac) = 24)),
  constraint set_aside_pkey PRIMARY KEY (id),
  constraint set_aside_reason_check CHECK ((char_length(reason) <= 2000)),
  constraint set_aside_tries_check CHECK (((tries >= 0) AND (tries <= 1000000)))
);
CREATE INDEX set_aside_amounts ON set_aside USING btree (network, account, amount_micro);
CREATE TRIGGER set_aside_keeps_what_it_is BEFORE UPDATE ON set_aside FOR EACH ROW EXECUTE FUNCTION keep_columns('reason', 'tries', 'due_at', 'mac');

-- Written by src/core/store/chain/cursor.ts
create table sightings (
  amount_micro bigint not null,
  block_number bigint not null,
  from_address text not null,
  invoice_id uuid not null,
  log_index integer not null,
  network text not null,
  position integer not null default 0,
  project_id uuid not null,
  tx_id bytea not null,
  constraint sightings_amount_micro_check CHECK ((amount_micro > 0)),
  constraint sightings_log_index_check CHECK ((log_index >= 0)),
  constraint sightings_network_block_number_fkey FOREIGN KEY (network, block_number) REFERENCES head_blocks(network, number) ON DELETE CASCADE,
  constraint sightings_pkey PRIMARY KEY (network, tx_id, log_index),
  constraint sightings_position_check CHECK (("position" >= 0)),
  constraint sightings_project_id_invoice_id_fkey FOREIGN KEY (project_id, invoice_id) REFERENCES invoices(project_id, id),
  constraint sightings_project_id_network_fkey FOREIGN KEY (project_id, network) REFERENCES projects(id, network),
  constraint sightings_tx_id_check CHECK ((octet_length(tx_id) = 32))
);
CREATE INDEX sightings_block ON sightings USING btree (network, block_number);
CREATE INDEX sightings_invoice ON sightings USING btree (project_id, invoice_id);

-- Written by src/faces/operator/subjects/passkeys.ts
create table spent_challenges (
  expires_at timestamp with time zone not null,
  sha256 bytea not null,
  constraint spent_challenges_pkey PRIMARY KEY (sha256),
  constraint spent_challenges_sha256_check CHECK ((octet_length(sha256) = 32))
);
CREATE INDEX spent_challenges_end ON spent_challenges USING btree (expires_at);

-- Written by src/faces/operator/subjects/chain-repair.ts
create table transfer_annulments (
  annulled_at timestamp with time zone not null,
  annulled_by text not null,
  denied_by bytea not null,
  invoice_id uuid,
  mac bytea,
  project_id uuid not null,
  reason text not null,
  transfer_id uuid not null,
  constraint transfer_annulments_annulled_by_check CHECK (((char_length(annulled_by) >= 1) AND (char_length(annulled_by) <= 200))),
  constraint transfer_annulments_denied_by_check CHECK ((octet_length(denied_by) = 32)),
  constraint transfer_annulments_mac_check CHECK ((octet_length(mac) = 24)),
  constraint transfer_annulments_pkey PRIMARY KEY (transfer_id),
  constraint transfer_annulments_reason_check CHECK (((char_length(reason) >= 1) AND (char_length(reason) <= 2000))),
  constraint transfer_annulments_transfer_id_project_id_fkey FOREIGN KEY (transfer_id, project_id) REFERENCES transfers(id, project_id),
  constraint transfer_annulments_transfer_id_project_id_invoice_id_fkey FOREIGN KEY (transfer_id, project_id, invoice_id) REFERENCES transfers(id, project_id, invoice_id)
);
CREATE TRIGGER transfer_annulments_are_kept BEFORE DELETE OR TRUNCATE ON transfer_annulments FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE TRIGGER transfer_annulments_keep_what_they_are BEFORE UPDATE ON transfer_annulments FOR EACH ROW EXECUTE FUNCTION keep_columns('mac');
CREATE TRIGGER transfer_annulments_name_what_was_paid BEFORE INSERT ON transfer_annulments FOR EACH ROW EXECUTE FUNCTION name_denied_payment();

-- Written by src/core/payments/claims.ts
create table transfer_claims (
  claimed_at timestamp with time zone not null,
  event_id uuid not null,
  invoice_id uuid not null,
  mac bytea,
  project_id uuid not null,
  transfer_id uuid not null,
  constraint transfer_claims_event_id_fkey FOREIGN KEY (event_id) REFERENCES events(id),
  constraint transfer_claims_event_id_key UNIQUE (event_id),
  constraint transfer_claims_mac_check CHECK ((octet_length(mac) = 24)),
  constraint transfer_claims_pkey PRIMARY KEY (transfer_id, invoice_id),
  constraint transfer_claims_project_id_invoice_id_fkey FOREIGN KEY (project_id, invoice_id) REFERENCES invoices(project_id, id),
  constraint transfer_claims_transfer_id_project_id_fkey FOREIGN KEY (transfer_id, project_id) REFERENCES transfers(id, project_id)
);
CREATE INDEX transfer_claims_invoice ON transfer_claims USING btree (project_id, invoice_id);
CREATE TRIGGER transfer_claims_are_kept BEFORE DELETE OR TRUNCATE ON transfer_claims FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE TRIGGER transfer_claims_are_of_unmatched BEFORE INSERT ON transfer_claims FOR EACH ROW EXECUTE FUNCTION refuse_resolved_match();
CREATE TRIGGER transfer_claims_keep_what_they_are BEFORE UPDATE ON transfer_claims FOR EACH ROW EXECUTE FUNCTION keep_columns('mac');
CREATE TRIGGER transfer_claims_tell_pages AFTER INSERT ON transfer_claims FOR EACH ROW EXECUTE FUNCTION tell_pages_of_resolution();

-- Written by src/core/store/ledger/transfer-refunds.ts
create table transfer_refunds (
  log_index integer not null,
  mac bytea,
  network text not null,
  project_id uuid not null,
  refunded_at timestamp with time zone not null,
  transfer_id uuid not null,
  tx_id bytea not null,
  constraint transfer_refunds_mac_check CHECK ((octet_length(mac) = 24)),
  constraint transfer_refunds_network_tx_id_log_index_fkey FOREIGN KEY (network, tx_id, log_index) REFERENCES outgoing_transfers(network, tx_id, log_index),
  constraint transfer_refunds_network_tx_id_log_index_key UNIQUE (network, tx_id, log_index),
  constraint transfer_refunds_pkey PRIMARY KEY (transfer_id),
  constraint transfer_refunds_transfer_id_project_id_fkey FOREIGN KEY (transfer_id, project_id) REFERENCES transfers(id, project_id)
);
CREATE TRIGGER transfer_refunds_are_kept BEFORE DELETE OR TRUNCATE ON transfer_refunds FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE TRIGGER transfer_refunds_are_of_unmatched BEFORE INSERT ON transfer_refunds FOR EACH ROW EXECUTE FUNCTION refuse_resolved_match();
CREATE TRIGGER transfer_refunds_keep_what_they_are BEFORE UPDATE ON transfer_refunds FOR EACH ROW EXECUTE FUNCTION keep_columns('mac');

-- Written by src/faces/operator/subjects/transfer-decisions.ts
create table transfer_resolutions (
  event_id uuid,
  id bigint not null generated always as identity,
  invoice_id uuid,
  is_untold boolean not null default true,
  mac bytea,
  note text not null,
  project_id uuid not null,
  resolution text not null,
  resolved_at timestamp with time zone not null,
  resolved_by text not null,
  transfer_id uuid not null,
  constraint transfer_resolutions_are_told CHECK ((is_untold = (event_id IS NULL))),
  constraint transfer_resolutions_event_id_fkey FOREIGN KEY (event_id) REFERENCES events(id),
  constraint transfer_resolutions_event_id_key UNIQUE (event_id),
  constraint transfer_resolutions_mac_check CHECK ((octet_length(mac) = 24)),
  constraint transfer_resolutions_note_check CHECK ((char_length(note) <= 2000)),
  constraint transfer_resolutions_pkey PRIMARY KEY (id),
  constraint transfer_resolutions_project_id_invoice_id_fkey FOREIGN KEY (project_id, invoice_id) REFERENCES invoices(project_id, id),
  constraint transfer_resolutions_resolution_names CHECK ((resolution = ANY (ARRAY['refunded'::text, 'fulfilled-manually'::text, 'own-deposit'::text, 'kept'::text, 'credited-outside'::text, 'ignored'::text]))),
  constraint transfer_resolutions_resolved_by_check CHECK (((char_length(resolved_by) >= 1) AND (char_length(resolved_by) <= 200))),
  constraint transfer_resolutions_transfer_id_project_id_fkey FOREIGN KEY (transfer_id, project_id) REFERENCES transfers(id, project_id)
);
CREATE INDEX transfer_resolutions_invoice ON transfer_resolutions USING btree (invoice_id) WHERE (invoice_id IS NOT NULL);
CREATE INDEX transfer_resolutions_time ON transfer_resolutions USING btree (resolved_at);
CREATE INDEX transfer_resolutions_transfer ON transfer_resolutions USING btree (transfer_id, id DESC);
CREATE TRIGGER transfer_resolutions_are_kept BEFORE DELETE OR TRUNCATE ON transfer_resolutions FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE TRIGGER transfer_resolutions_are_of_unmatched BEFORE INSERT ON transfer_resolutions FOR EACH ROW EXECUTE FUNCTION refuse_resolved_match();
CREATE TRIGGER transfer_resolutions_keep_what_they_are BEFORE UPDATE ON transfer_resolutions FOR EACH ROW EXECUTE FUNCTION keep_columns('mac');
CREATE TRIGGER transfer_resolutions_tell_pages AFTER INSERT ON transfer_resolutions FOR EACH ROW EXECUTE FUNCTION tell_pages_of_resolution();

-- Written by src/core/payments/record-transfers.ts
create table transfers (
  address_id uuid not null,
  amount_micro numeric(78,0) not null,
  block_id bytea not null,
  block_number bigint not null,
  block_time timestamp with time zone not null,
  correction integer not null default 0,
  from_address text not null,
  id uuid not null,
  invoice_id uuid,
  kind text not null,
  log_index integer not null,
  mac bytea,
  network text not null,
  nodes text[] not null,
  producer bytea,
  project_id uuid not null,
  recorded_at timestamp with time zone not null default now(),
  reserved_micro bigint,
  tx_id bytea not null,
  verified text not null,
  constraint transfers_amount_micro_check CHECK ((amount_micro > (0)::numeric)),
  constraint transfers_block_id_check CHECK ((octet_length(block_id) = 32)),
  constraint transfers_block_number_check CHECK ((block_number >= 0)),
  constraint transfers_correction_check CHECK ((correction >= 0)),
  constraint transfers_finite CHECK ((isfinite(block_time) AND (amount_micro <> 'NaN'::numeric))) NOT VALID,
  constraint transfers_id_project_id_invoice_id_key UNIQUE (id, project_id, invoice_id),
  constraint transfers_id_project_id_key UNIQUE (id, project_id),
  constraint transfers_kind CHECK (
CASE kind
    WHEN 'unmatched'::text THEN ((invoice_id IS NULL) AND (reserved_micro IS NULL))
    ELSE ((invoice_id IS NOT NULL) AND (reserved_micro IS NOT NULL) AND ((reserved_micro)::numeric = amount_micro))
END),
  constraint transfers_kind_check CHECK ((kind = ANY (ARRAY['matched'::text, 'duplicate'::text, 'unmatched'::text]))),
  constraint transfers_log_index_check CHECK ((log_index >= 0)),
  constraint transfers_mac_check CHECK ((octet_length(mac) = 24)),
  constraint transfers_once UNIQUE (network, tx_id, log_index, correction),
  constraint transfers_pkey PRIMARY KEY (id),
  constraint transfers_producer_check CHECK ((octet_length(producer) = 20)),
  constraint transfers_project_id_invoice_id_fkey FOREIGN KEY (project_id, invoice_id) REFERENCES invoices(project_id, id),
  constraint transfers_project_id_network_address_id_fkey FOREIGN KEY (project_id, network, address_id) REFERENCES addresses(project_id, network, id),
  constraint transfers_tx_id_check CHECK ((octet_length(tx_id) = 32)),
  constraint transfers_verified_check CHECK ((verified ~ '^(proven|agreed:[0-9]{1,2}|single-node)$'::text))
);
CREATE INDEX transfers_address ON transfers USING btree (address_id, block_number);
CREATE INDEX transfers_duplicates ON transfers USING btree (project_id, invoice_id, id) WHERE (kind = 'duplicate'::text);
CREATE UNIQUE INDEX transfers_pay_once ON transfers USING btree (project_id, invoice_id) WHERE (kind = 'matched'::text);
CREATE INDEX transfers_project ON transfers USING btree (project_id, id);
CREATE INDEX transfers_sender ON transfers USING btree (project_id, from_address);
CREATE INDEX transfers_sender_ends ON transfers USING btree (project_id, "left"(from_address, 4), "right"(from_address, 4), block_time);
CREATE INDEX transfers_unsettled ON transfers USING btree (project_id, id) WHERE (kind <> 'matched'::text);
CREATE TRIGGER transfers_are_kept BEFORE DELETE OR TRUNCATE ON transfers FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE TRIGGER transfers_fit_their_invoice BEFORE INSERT ON transfers FOR EACH ROW WHEN ((new.invoice_id IS NOT NULL)) EXECUTE FUNCTION tie_transfer_to_invoice();
CREATE CONSTRAINT TRIGGER transfers_follow_annulled_ones AFTER INSERT ON transfers DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN ((new.correction > 0)) EXECUTE FUNCTION follow_annulled();
CREATE TRIGGER transfers_keep_what_they_are BEFORE UPDATE ON transfers FOR EACH ROW WHEN (((old.id IS DISTINCT FROM new.id) OR (old.project_id IS DISTINCT FROM new.project_id) OR (old.network IS DISTINCT FROM new.network) OR (old.address_id IS DISTINCT FROM new.address_id) OR (old.tx_id IS DISTINCT FROM new.tx_id) OR (old.log_index IS DISTINCT FROM new.log_index) OR (old.block_number IS DISTINCT FROM new.block_number) OR (old.block_id IS DISTINCT FROM new.block_id) OR (old.block_time IS DISTINCT FROM new.block_time) OR (old.from_address IS DISTINCT FROM new.from_address) OR (old.amount_micro IS DISTINCT FROM new.amount_micro) OR (old.kind IS DISTINCT FROM new.kind) OR (old.invoice_id IS DISTINCT FROM new.invoice_id) OR (old.reserved_micro IS DISTINCT FROM new.reserved_micro) OR (old.recorded_at IS DISTINCT FROM new.recorded_at) OR (old.producer IS DISTINCT FROM new.producer) OR (old.verified IS DISTINCT FROM new.verified) OR (old.nodes IS DISTINCT FROM new.nodes) OR (old.correction IS DISTINCT FROM new.correction))) EXECUTE FUNCTION keep_columns('mac');
CREATE CONSTRAINT TRIGGER transfers_pay_their_invoice AFTER INSERT ON transfers DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN ((new.kind = 'matched'::text)) EXECUTE FUNCTION prove_match();

-- Written by src/core/payments/record-transfers.ts
create table untold_transfers (
  network text not null,
  project_id uuid not null,
  transfer_id uuid not null,
  constraint untold_transfers_pkey PRIMARY KEY (network, transfer_id, project_id)
);

-- Written by src/core/store/outbox/adapter-orders.ts
-- Written by src/core/store/outbox/deliveries.ts
-- Written by src/core/store/outbox/webhook-endpoints.ts
-- Written by src/core/store/outbox/webhook-secrets.ts
create table webhook_endpoints (
  adapter text,
  consecutive_failures integer not null default 0,
  created_at timestamp with time zone not null default now(),
  currency text,
  description text not null default ''::text,
  disabled_at timestamp with time zone,
  disabled_reason text,
  event_types text[],
  failing_since timestamp with time zone,
  id uuid not null,
  mac bytea,
  network text not null,
  open_until timestamp with time zone,
  project_id uuid not null,
  rate_max_micro bigint,
  rate_micro bigint,
  rate_min_micro bigint,
  rate_source text,
  read_at timestamp with time zone,
  read_mac bytea,
  read_micro bigint,
  secret text,
  url text not null,
  constraint webhook_endpoints_adapter CHECK ((num_nonnulls(adapter, currency, rate_micro) = ANY (ARRAY[0, 3]))),
  constraint webhook_endpoints_adapter_check CHECK ((adapter = ANY (ARRAY['epusdt'::text, 'bepusdt'::text, 'epay'::text, 'price'::text]))),
  constraint webhook_endpoints_adapter_health CHECK (((adapter IS NULL) OR ((failing_since IS NULL) AND (consecutive_failures = 0) AND (open_until IS NULL)))),
  constraint webhook_endpoints_consecutive_failures_bounds CHECK (((consecutive_failures >= 0) AND (consecutive_failures <= 1000000))) NOT VALID,
  constraint webhook_endpoints_consecutive_failures_check CHECK ((consecutive_failures >= 0)),
  constraint webhook_endpoints_currency_check CHECK ((currency ~ '^[A-Z]{3,5}$'::text)),
  constraint webhook_endpoints_description_check CHECK ((char_length(description) <= 200)),
  constraint webhook_endpoints_disabled_at_bounds CHECK (((disabled_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (disabled_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint webhook_endpoints_event_types_check CHECK (((cardinality(event_types) >= 1) AND (cardinality(event_types) <= 50))),
  constraint webhook_endpoints_failing_since_bounds CHECK (((failing_since >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (failing_since <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint webhook_endpoints_mac_check CHECK ((octet_length(mac) = 24)),
  constraint webhook_endpoints_no_plain_secret CHECK ((secret IS NULL)),
  constraint webhook_endpoints_open_until_bounds CHECK (((open_until >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (open_until <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint webhook_endpoints_pkey PRIMARY KEY (id),
  constraint webhook_endpoints_project_id_id_key UNIQUE (project_id, id),
  constraint webhook_endpoints_project_id_network_fkey FOREIGN KEY (project_id, network) REFERENCES projects(id, network),
  constraint webhook_endpoints_rate_bounds CHECK (((num_nonnulls(adapter, rate_min_micro, rate_max_micro) = ANY (ARRAY[0, 3])) AND ((adapter IS NULL) OR ((rate_micro >= rate_min_micro) AND (rate_micro <= rate_max_micro) AND COALESCE(((read_micro >= rate_min_micro) AND (read_micro <= rate_max_micro)), true))))),
  constraint webhook_endpoints_rate_max_micro_bounds CHECK (((rate_max_micro >= '1'::bigint) AND (rate_max_micro <= '1000000000000000'::bigint))) NOT VALID,
  constraint webhook_endpoints_rate_micro_bounds CHECK (((rate_micro >= '1'::bigint) AND (rate_micro <= '1000000000000000'::bigint))) NOT VALID,
  constraint webhook_endpoints_rate_micro_check CHECK ((rate_micro > 0)),
  constraint webhook_endpoints_rate_min_micro_bounds CHECK (((rate_min_micro >= '1'::bigint) AND (rate_min_micro <= '1000000000000000'::bigint))) NOT VALID,
  constraint webhook_endpoints_rate_min_micro_check CHECK ((rate_min_micro > 0)),
  constraint webhook_endpoints_rate_source CHECK (((num_nonnulls(rate_source, read_micro, read_at) = ANY (ARRAY[0, 3])) AND ((rate_source IS NULL) OR COALESCE(((adapter IS NOT NULL) AND (((read_micro)::numeric >= ((((rate_source)::jsonb ->> 'min'::text))::numeric * (1000000)::numeric)) AND ((read_micro)::numeric <= ((((rate_source)::jsonb ->> 'max'::text))::numeric * (1000000)::numeric)))), false)))),
  constraint webhook_endpoints_rate_source_check CHECK (((char_length(rate_source) >= 2) AND (char_length(rate_source) <= 8192))),
  constraint webhook_endpoints_read_at_bounds CHECK (((read_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (read_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint webhook_endpoints_read_at_check CHECK (((read_at >= '2020-01-01 00:00:00+00'::timestamp with time zone) AND (read_at <= '9999-01-01 00:00:00+00'::timestamp with time zone))),
  constraint webhook_endpoints_read_mac_check CHECK ((octet_length(read_mac) = 24)),
  constraint webhook_endpoints_read_micro_bounds CHECK (((read_micro >= '1'::bigint) AND (read_micro <= '1000000000000000'::bigint))) NOT VALID,
  constraint webhook_endpoints_read_micro_check CHECK ((read_micro > 0)),
  constraint webhook_endpoints_url_check CHECK ((char_length(url) <= 2048))
);
CREATE TRIGGER webhook_endpoints_are_kept BEFORE DELETE OR TRUNCATE ON webhook_endpoints FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE TRIGGER webhook_endpoints_bound_pauses BEFORE INSERT OR UPDATE OF open_until ON webhook_endpoints FOR EACH ROW WHEN ((new.open_until IS NOT NULL)) EXECUTE FUNCTION bound_pause();
CREATE TRIGGER webhook_endpoints_keep_what_they_are BEFORE UPDATE ON webhook_endpoints FOR EACH ROW EXECUTE FUNCTION keep_columns('url', 'description', 'event_types', 'failing_since', 'consecutive_failures', 'open_until', 'disabled_at', 'disabled_reason', 'rate_micro', 'rate_source', 'rate_min_micro', 'rate_max_micro', 'read_micro', 'read_at', 'read_mac', 'mac');

-- Written by src/core/store/outbox/webhook-secrets.ts
create table webhook_secrets (
  created_at timestamp with time zone not null,
  endpoint_id uuid not null,
  ends_at timestamp with time zone,
  id uuid not null,
  master_key_id text not null,
  project_id uuid not null,
  sealed bytea not null,
  constraint webhook_secrets_ends_at_bounds CHECK (((ends_at >= '1970-01-01 00:00:00+00'::timestamp with time zone) AND (ends_at <= '2200-01-01 00:00:00+00'::timestamp with time zone))) NOT VALID,
  constraint webhook_secrets_master_key_id_check CHECK ((master_key_id ~ '^[0-9a-f]{16}$'::text)),
  constraint webhook_secrets_pkey PRIMARY KEY (id),
  constraint webhook_secrets_project_id_endpoint_id_fkey FOREIGN KEY (project_id, endpoint_id) REFERENCES webhook_endpoints(project_id, id),
  constraint webhook_secrets_sealed_check CHECK (((octet_length(sealed) >= 52) AND (octet_length(sealed) <= 92)))
);
CREATE UNIQUE INDEX webhook_secrets_current ON webhook_secrets USING btree (endpoint_id) WHERE (ends_at IS NULL);
CREATE INDEX webhook_secrets_endpoint ON webhook_secrets USING btree (endpoint_id, created_at);
CREATE TRIGGER webhook_secrets_are_kept BEFORE DELETE OR TRUNCATE ON webhook_secrets FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger_rows();
CREATE TRIGGER webhook_secrets_keep_what_they_are BEFORE UPDATE ON webhook_secrets FOR EACH ROW EXECUTE FUNCTION keep_columns('master_key_id', 'sealed', 'ends_at');

create function bound_pause() returns trigger language plpgsql kind f volatile v parallel u set search_path=pg_catalog, pg_temp as 
begin
  new.open_until := least(new.open_until, now() + interval '10 minutes');
  return new;
end;

create function chain_operator_action() returns trigger language plpgsql kind f volatile v parallel u as 
declare
  last record;
begin
  perform pg_advisory_xact_lock(hashtext(format('%I.operator_actions', tg_table_schema)));
  select seq, hash into last from operator_actions order by seq desc limit 1;
  new.seq := coalesce(last.seq, 0) + 1;
  new.hash := sha256(coalesce(last.hash, decode(repeat('00', 32), 'hex')) || operator_action_content(new));
  return new;
end;

create function follow_annulled() returns trigger language plpgsql kind f volatile v parallel u set search_path=pg_catalog, (this schema), pg_temp as 
begin
  if tg_table_name = 'transfers' then
    perform from transfers t join transfer_annulments n on n.transfer_id = t.id
    where t.network = new.network and t.tx_id = new.tx_id and t.log_index = new.log_index and t.correction = new.correction - 1;
  else
    perform from outgoing_annulments n
    where n.network = new.network and n.tx_id = new.tx_id and n.log_index = new.log_index and n.correction = new.correction - 1;
  end if;
  if not found then
    raise exception 'log % of transaction % is recorded already, and was not taken back', new.log_index, new.tx_id
      using errcode = 'unique_violation';
  end if;
  return null;
end;

create function forget_allocation_hints() returns trigger language plpgsql kind f volatile v parallel u security definer set search_path=pg_catalog, (this schema), pg_temp as 
begin
  update projects set allocation_epoch = allocation_epoch + 1 where id in (
    select n.project_id from new_rows n join old_rows o on o.id = n.id
    where (o.retired_at is not null or o.freeze_state is not null) and n.retired_at is null and n.freeze_state is null);
  return null;
end;

create function forget_claim_requests(text,uuid[],text[]) returns void language sql kind f volatile v parallel u security definer as  BEGIN ATOMIC
 DELETE FROM claim_requests r
    USING UNNEST(forget_claim_requests.invoices, forget_claim_requests.tx_ids) judged(invoice_id, tx_id)
   WHERE ((r.network = forget_claim_requests.of_network) AND (r.invoice_id = judged.invoice_id) AND (r.tx_id = decode(judged.tx_id, 'hex'::text)));
END;

create function forget_finished_deliveries(uuid,timestamp with time zone,bigint) returns record language sql kind f volatile v parallel u security definer as  BEGIN ATOMIC
 WITH seen AS MATERIALIZED (
          SELECT deliveries.event_id,
             deliveries.endpoint_id
            FROM deliveries
           WHERE ((deliveries.event_id > forget_finished_deliveries.behind) AND (deliveries.event_id < ((lpad(to_hex(((EXTRACT(epoch FROM forget_finished_deliveries.before) * (1000)::numeric))::bigint), 12, '0'::text) || repeat('0'::text, 20)))::uuid))
           ORDER BY deliveries.event_id
          FETCH FIRST (forget_finished_deliveries.at_once) ROWS WITH TIES
         ), old AS MATERIALIZED (
          SELECT d.event_id,
             d.endpoint_id
            FROM (seen
              CROSS JOIN LATERAL ( SELECT d_1.event_id,
                     d_1.endpoint_id
                    FROM deliveries d_1
                   WHERE ((d_1.event_id = seen.event_id) AND (d_1.endpoint_id = seen.endpoint_id) AND (d_1.status <> 'pending'::text) AND (d_1.finished_at < forget_finished_deliveries.before))
                  FOR UPDATE OF d_1 SKIP LOCKED) d)
         ), attempts AS (
          DELETE FROM delivery_attempts a
            USING old
           WHERE ((a.event_id = old.event_id) AND (a.endpoint_id = old.endpoint_id))
         ), gone AS (
          DELETE FROM deliveries d
            USING old
           WHERE ((d.event_id = old.event_id) AND (d.endpoint_id = old.endpoint_id))
           RETURNING 1 AS "?column?"
         )
  SELECT ( SELECT max((seen.event_id)::text) AS max
            FROM seen) AS max,
     ( SELECT count(*) AS count
            FROM gone) AS count;
END;

create function forget_head_blocks_above(text,bigint,jsonb) returns void language sql kind f volatile v parallel u security definer as  BEGIN ATOMIC
 DELETE FROM head_blocks h
   WHERE ((h.network = forget_head_blocks_above.of_network) AND (h.number > forget_head_blocks_above.height) AND (NOT (EXISTS ( SELECT
            FROM jsonb_array_elements(forget_head_blocks_above.kept) k(value)
           WHERE ((((k.value ->> 'number'::text))::bigint = h.number) AND (decode((k.value ->> 'id'::text), 'hex'::text) = h.block_id))))));
END;

create function forget_head_blocks_up_to(text,bigint) returns void language sql kind f volatile v parallel u security definer as  BEGIN ATOMIC
 DELETE FROM head_blocks h
   WHERE ((h.network = forget_head_blocks_up_to.of_network) AND (h.number <= forget_head_blocks_up_to.height));
END;

create function forget_old_arrivals(text,timestamp with time zone) returns void language sql kind f volatile v parallel u security definer as  BEGIN ATOMIC
 DELETE FROM arrivals a
   WHERE ((a.network = forget_old_arrivals.of_network) AND (a.first_time < forget_old_arrivals.before));
END;

create function forget_old_notifications(timestamp with time zone) returns void language sql kind f volatile v parallel u security definer as  BEGIN ATOMIC
 DELETE FROM notifications
   WHERE (notifications.id IN ( SELECT n.id
            FROM notifications n
           WHERE ((n.status <> 'waiting'::text) AND (n.ended_at < forget_old_notifications.before) AND (NOT (EXISTS ( SELECT
                    FROM alarms a
                   WHERE ((('alarm:'::text || a.id) = n.about) AND (a.resolved_at IS NULL))))))
           ORDER BY n.ended_at
          LIMIT 1000));
END;

create function forget_old_requests(timestamp with time zone) returns void language plpgsql kind f volatile v parallel u security definer set search_path=pg_catalog, (this schema), pg_temp as 
declare
  part regclass;
  is_old boolean;
begin
  for part in select inhrelid from pg_inherits where inhparent = 'requests'::regclass order by 1 loop
    execute format('select max(at) < $1 from %s', part) into is_old using before;
    if is_old then
      execute format('lock table %s in access exclusive mode', part);
      -- Somebody may have written to it meanwhile.
      execute format('select max(at) < $1 from %s', part) into is_old using before;
      if is_old then
        execute format('truncate %s', part);
      end if;
    end if;
  end loop;
end;

create function forget_old_sessions(timestamp with time zone) returns void language sql kind f volatile v parallel u security definer as  BEGIN ATOMIC
 DELETE FROM sessions
   WHERE (sessions.id IN ( SELECT sessions_1.id
            FROM sessions sessions_1
           WHERE (sessions_1.created_at < LEAST(forget_old_sessions.before, (now() - '8 days'::interval)))
           ORDER BY sessions_1.created_at
          LIMIT 1000));
 DELETE FROM invitations
   WHERE (invitations.sha256 IN ( SELECT invitations_1.sha256
            FROM invitations invitations_1
           WHERE (invitations_1.expires_at < LEAST(forget_old_sessions.before, (now() - '8 days'::interval)))
          LIMIT 1000));
 DELETE FROM spent_challenges
   WHERE (spent_challenges.sha256 IN ( SELECT spent_challenges_1.sha256
            FROM spent_challenges spent_challenges_1
           WHERE (spent_challenges_1.expires_at < LEAST(forget_old_sessions.before, (now() - '8 days'::interval)))
           ORDER BY spent_challenges_1.expires_at
          LIMIT 1000));
END;

create function forget_set_aside(text) returns void language sql kind f volatile v parallel u security definer as  BEGIN ATOMIC
 DELETE FROM set_aside s
   WHERE ((s.id = forget_set_aside.of_id) AND ((s.account IS NULL) OR (EXISTS ( SELECT
            FROM transfers t
           WHERE ((t.network = s.network) AND (t.tx_id = decode(split_part(s.id, ' '::text, 3), 'hex'::text)) AND (t.log_index = (split_part(s.id, ' '::text, 4))::integer)))) OR (NOT (EXISTS ( SELECT
            FROM addresses a
           WHERE ((a.network = s.network) AND (a.account = s.account) AND (a.retired_at IS NULL)))))));
END;

create function forget_told_transfers(text,uuid[]) returns void language sql kind f volatile v parallel u security definer as  BEGIN ATOMIC
 DELETE FROM untold_transfers u
   WHERE ((u.network = forget_told_transfers.of_network) AND (u.transfer_id = ANY (forget_told_transfers.ids)) AND (EXISTS ( SELECT
            FROM events e
           WHERE ((e.transfer_id = u.transfer_id) AND (e.project_id = u.project_id) AND (e.type = ANY (ARRAY['transfer.unmatched'::text, 'transfer.duplicate'::text]))))));
END;

create function hurry_devnet_invoice(text,timestamp with time zone) returns timestamp with time zone language sql kind f volatile v parallel u security definer as  BEGIN ATOMIC
 UPDATE invoices SET expires_at = LEAST(invoices.expires_at, hurry_devnet_invoice.deadline)
   WHERE ((invoices.checkout_token = hurry_devnet_invoice.token) AND (invoices.network = 'devnet'::text) AND (invoices.status = 'PENDING'::text))
   RETURNING invoices.expires_at;
END;

create function join_head_blocks() returns trigger language plpgsql kind f volatile v parallel u set search_path=pg_catalog, (this schema), pg_temp as 
begin
  if (select min(h.number) - c.solid_number from chain_cursors c join head_blocks h using (network) where c.network = new.network
    group by c.solid_number) <> 1 then
    raise exception 'the cursor of % moves to block %, and the examined blocks above it do not begin there', new.network, new.solid_number
      using errcode = 'check_violation';
  end if;
  return null;
end;

create function keep_addresses_barred() returns trigger language plpgsql kind f volatile v parallel u as 
begin
  raise exception 'address % is barred for ever: amounts of it may be known to payers and not to this database', old.address
    using errcode = 'check_violation';
end;

create function keep_an_owner() returns trigger language plpgsql kind f volatile v parallel u set search_path=pg_catalog, (this schema), pg_temp as 
begin
  perform pg_advisory_xact_lock(hashtext(format('%I.people', tg_table_schema)));
  if not exists (select from people where role = 'owner' and removed_at is null and id <> old.id) then
    raise exception '% is the last owner', old.login using errcode = 'check_violation', constraint = 'people_last_owner';
  end if;
  return new;
end;

create function keep_columns() returns trigger language plpgsql kind f volatile v parallel u set search_path=pg_catalog, pg_temp as 
declare
  -- Without an argument the list is null.
  before jsonb := to_jsonb(old) - coalesce(tg_argv, '{}');
  after jsonb := to_jsonb(new) - coalesce(tg_argv, '{}');
begin
  if before is distinct from after then
    raise exception '% of % % is never changed',
      (select string_agg(key, ', ' order by key) from jsonb_each(before) where value is distinct from after -> key),
      tg_table_name, coalesce(before ->> 'id', '') using errcode = 'check_violation';
  end if;
  return new;
end;

create function keep_identity() returns trigger language plpgsql kind f volatile v parallel u set search_path=pg_catalog, pg_temp as 
begin
  if new.database_oid = 0 and new.system_identifier is not distinct from old.system_identifier and new.timeline is not distinct from old.timeline then
    if old.timeline is null or not has_function_privilege('pg_walfile_name(pg_lsn)', 'execute') then
      return new;
    end if;
    if ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int > 1 then
      return new;
    end if;
  end if;
  if new.database_oid is distinct from (select oid::int8 from pg_database where datname = current_database())
    or has_function_privilege('pg_control_system()', 'execute') and has_function_privilege('pg_control_checkpoint()', 'execute')
    and (new.system_identifier is distinct from (select system_identifier::text from pg_control_system())
      or new.timeline is distinct from (select timeline_id from pg_control_checkpoint()))
  then
    raise exception 'the ledger cannot be marked as one of another database' using errcode = 'check_violation', constraint = tg_name;
  end if;
  return new;
end;

create function keep_ledger_rows() returns trigger language plpgsql kind f volatile v parallel u as 
begin
  raise exception 'rows of % are never %', tg_table_name,
    case tg_op when 'UPDATE' then 'changed' else 'deleted' end using errcode = 'check_violation';
end;

create function keep_paid_invoices() returns trigger language plpgsql kind f volatile v parallel u as 
begin
  raise exception 'invoice % is PAID, and PAID is never left', old.id using errcode = 'check_violation';
end;

create function lock_transfers(uuid[]) returns uuid language sql kind f volatile v parallel u security definer as  BEGIN ATOMIC
 SELECT t.id
    FROM transfers t
   WHERE (t.id = ANY (lock_transfers.ids))
   ORDER BY t.id
  FOR NO KEY UPDATE OF t;
END;

create function mark_closing() returns trigger language plpgsql kind f volatile v parallel u set search_path=pg_catalog, pg_temp as 
begin
  -- A restore inserts alarms that are over as they were. Taking the seal away from an open one undoes nothing.
  if new.resolved_at is not null then
    return new;
  end if;
  new.needs_closing := new.mac is not null;
  if tg_op = 'UPDATE' then
    new.needs_closing := new.needs_closing or old.needs_closing;
  end if;
  return new;
end;

create function name_denied_payment() returns trigger language plpgsql kind f volatile v parallel u set search_path=pg_catalog, (this schema), pg_temp as 
begin
  if (select case kind when 'matched' then invoice_id end from transfers where id = new.transfer_id)
    is distinct from new.invoice_id then
    raise exception 'transfer % is taken back only with the invoice that it paid', new.transfer_id
      using errcode = 'check_violation';
  end if;
  return new;
end;

create function prove_event() returns trigger language plpgsql kind f volatile v parallel u set search_path=pg_catalog, (this schema), pg_temp as 
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
end;

create function prove_match() returns trigger language plpgsql kind f volatile v parallel u set search_path=pg_catalog, (this schema), pg_temp as 
begin
  if not exists (
    select from invoices i
    where i.project_id = new.project_id and i.id = new.invoice_id and i.status = 'PAID' and i.paid_transfer_id = new.id) then
    raise exception 'transfer % is matched, and invoice % is not PAID by it', new.id, new.invoice_id using errcode = 'check_violation';
  end if;
  return null;
end;

create function prove_status() returns trigger language plpgsql kind f volatile v parallel u set search_path=pg_catalog, (this schema), pg_temp as 
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
end;

create function refuse_denied_payment() returns trigger language plpgsql kind f volatile v parallel u set search_path=pg_catalog, (this schema), pg_temp as 
begin
  if exists (select from transfer_annulments where transfer_id = new.paid_transfer_id) then
    raise exception 'transfer % was taken back and pays nothing', new.paid_transfer_id using errcode = 'check_violation';
  end if;
  return new;
end;

create function refuse_later_freeze() returns trigger language plpgsql kind f volatile v parallel u set search_path=pg_catalog, (this schema), pg_temp as 
begin
  if not exists (select from chain_cursors c where c.network = new.network and c.solid_number >= new.freeze_block - 1000) then
    raise exception 'freeze_block of addresses cannot become %: no process has seen that block', new.freeze_block
      using errcode = 'check_violation', constraint = tg_name;
  end if;
  return new;
end;

create function refuse_later_than() returns trigger language plpgsql kind f volatile v parallel u as 
begin
  if (pg_catalog.to_jsonb(new) ->> tg_argv[0])::timestamptz > now() + tg_argv[1]::interval then
    raise exception '% of % cannot become %: it lies % ahead at most', tg_argv[0], tg_table_name, pg_catalog.to_jsonb(new) ->> tg_argv[0], tg_argv[1]
      using errcode = 'check_violation', constraint = tg_name;
  end if;
  return new;
end;

create function refuse_lone_move() returns trigger language plpgsql kind f volatile v parallel u set search_path=pg_catalog, (this schema), pg_temp as 
begin
  if new.solid_number <= old.solid_number or new.solid_number > old.solid_number + 1000 then
    raise exception 'the cursor of % moves from block % to %: it goes forward, by 1,000 blocks at most', new.network, old.solid_number,
      new.solid_number using errcode = 'check_violation';
  end if;
  if not exists (select from leases where name = 'watcher:' || new.network and expires_at > now()) then
    raise exception 'the cursor of % moves, and no process follows that network', new.network using errcode = 'check_violation';
  end if;
  return new;
end;

create function refuse_new_invoices() returns trigger language plpgsql kind f volatile v parallel u as 
begin
  raise exception 'this ledger was closed by its final backup: new invoices are made where that was restored'
    using errcode = 'read_only_sql_transaction';
end;

create function refuse_resolved_match() returns trigger language plpgsql kind f volatile v parallel u set search_path=pg_catalog, (this schema), pg_temp as 
begin
  if exists (select from transfers where id = new.transfer_id and kind = 'matched') then
    raise exception 'transfer % paid its invoice: there is nothing to resolve', new.transfer_id
      using errcode = 'check_violation';
  end if;
  return new;
end;

create function refuse_untold_change() returns trigger language plpgsql kind f volatile v parallel u as 
begin
  raise exception 'invoice % went from % to % with % more events: each change of its status is one event', new.id, old.status, new.status,
    new.event_count - old.event_count using errcode = 'check_violation';
end;

create function refuse_value() returns trigger language plpgsql kind f volatile v parallel u set search_path=pg_catalog, pg_temp as 
begin
  raise exception '% of % cannot become %: %', tg_argv[0], tg_table_name, to_jsonb(new) ->> tg_argv[0], tg_argv[1]
    using errcode = 'check_violation', constraint = tg_name;
end;

create function refuse_way_back() returns trigger language plpgsql kind f volatile v parallel u as 
begin
  raise exception '% of % never goes back', tg_argv[0], tg_table_name using errcode = 'check_violation';
end;

create function take_event_position() returns trigger language plpgsql kind f volatile v parallel u set search_path=pg_catalog, (this schema), pg_temp as 
begin
  insert into event_streams as s (project_id, last_position) values (new.project_id, 1)
    on conflict (project_id) do update set last_position = s.last_position + 1
    returning last_position into new.position;
  return new;
end;

create function tell_all_pages() returns trigger language plpgsql kind f volatile v parallel u as 
begin
  perform pg_notify('quittance_invoices', 'all');
  return null;
end;

create function tell_invoice_status() returns trigger language plpgsql kind f volatile v parallel u as 
begin
  perform pg_notify('quittance_invoices', new.id::text);
  return null;
end;

create function tell_pages_of_resolution() returns trigger language plpgsql kind f volatile v parallel u as 
begin
  perform pg_notify('quittance_invoices', named.invoice_id::text) from (
    select invoice_id from transfer_resolutions where transfer_id = new.transfer_id and invoice_id is not null
    union select invoice_id from transfer_claims where transfer_id = new.transfer_id) named;
  return null;
end;

create function tie_transfer_to_invoice() returns trigger language plpgsql kind f volatile v parallel u set search_path=pg_catalog, (this schema), pg_temp as 
declare
  is_later boolean := (
    select may_pay(i.payable_after, i.created_at, new.network, new.tx_id, new.log_index, new.block_time) from invoices i
    where i.project_id = new.project_id and i.id = new.invoice_id
      and i.address_id = new.address_id and i.payable_micro = new.reserved_micro);
begin
  if is_later is null then
    raise exception 'transfer % of % is not to the address and of the amount that invoice % reserves',
      new.id, new.amount_micro, new.invoice_id using errcode = 'foreign_key_violation';
  end if;
  if not is_later then
    raise exception 'transfer % of % was on the chain before invoice %', new.id, new.block_time, new.invoice_id
      using errcode = 'check_violation';
  end if;
  return new;
end;

create function tron_address(bytea) returns text language plpgsql kind f volatile i parallel s strict set search_path=pg_catalog, pg_temp as 
declare
  bytes bytea := '\x41'::bytea || account;
  number numeric := 0;
  address text := '';
begin
  bytes := bytes || substr(sha256(sha256(bytes)), 1, 4);
  for i in 0 .. length(bytes) - 1 loop
    number := number * 256 + get_byte(bytes, i);
  end loop;
  while number > 0 loop
    address := substr('123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz', (number % 58)::integer + 1, 1) || address;
    number := div(number, 58);
  end loop;
  return address;
end;
