import { type AccountHex, accountToAddress } from '@quittance/tron/address';
import type pg from 'pg';

/** Returns a UUID for tests. Ids of different things begin with a different digit. */
export const uuid = (n: number) => `00000000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`;
const bytes = (length: number, n: number) => `\\x${n.toString(16).padStart(length * 2, '0')}`;
/** Returns the address whose account is the number `n`. */
export const addressOf = (n: number) => accountToAddress(bytes(20, n).slice(2) as AccountHex);

export const PROJECT = uuid(0x1001);
const KEY = uuid(0x2001);

const AT = '2026-09-01 12:00:00.123456+00';
const LATER = '2026-09-01 13:30:00.654321+00';
/**
 * JSON options as a shop may send them. `ODD` contains the characters that `copy` must escape and that JSON, shells and terminals stumble
 * over.
 */
const OPTIONS = '{"expiresInSeconds":900,"description":"Tee"}';
const ODD = 'Grüße ₮ "\\N" \\. \\t\ttab\nline\r 𝄞 \u2028 null';

/**
 * Fills a database that is migrated to `version` with rows of every table and status, as a service of that release would have written them.
 * Returns the names of the tables.
 */
export async function fillLedger(client: pg.ClientBase, version: number): Promise<void> {
  const insert = async (table: string, ...rows: Record<string, unknown>[]) => {
    for (const row of rows) {
      const names = Object.keys(row);
      const places = names.map((_, index) => `$${index + 1}`).join(', ');
      await client.query(`insert into ${table} (${names.join(', ')}) values (${places})`, Object.values(row));
    }
  };
  const since = <Row>(first: number, row: Row) => (version >= first ? row : {});
  await client.query('begin');

  if (version >= 5) {
    await insert('logos', { id: 'ab'.repeat(16), type: 'image/png', content: bytes(300, 255), created_at: AT });
  }
  const project = { network: 'devnet', max_surcharge_micro: 10_000, invoice_lifetime_ms: 1_800_000, created_at: AT };
  await insert(
    'projects',
    {
      ...project,
      ...{ id: PROJECT, name: ODD.slice(0, 60) },
      ...since(5, {
        support_contact: ODD,
        return_url: 'https://shop.example/?a=1&b=2',
        accent: '#00aa11',
        logo_id: 'ab'.repeat(16),
      }),
      ...since(25, { embed_origins: 'https://shop.example http://localhost:3000' }),
      ...since(40, { limits_mac: bytes(24, 40) }),
    },
    {
      ...project,
      id: uuid(0x1002),
      name: 'Exact',
      network: 'nile',
      ...since(3, { policy: 'exact', allocation_epoch: 3 }),
    },
  );
  await insert(
    'api_keys',
    {
      ...{ id: KEY, project_id: PROJECT, network: 'devnet', name: 'all', secret_sha256: bytes(32, 7) },
      ...{ allowed_cidrs: ['10.0.0.0/8', '::1/128'], created_at: AT, expires_at: '2099-01-01', last_used_at: LATER },
      ...since(29, { scopes: ['read', 'webhooks'] }),
    },
    {
      id: uuid(0x2002),
      project_id: PROJECT,
      network: 'devnet',
      name: 'revoked',
      secret_sha256: bytes(32, 8),
      revoked_at: AT,
    },
  );
  const xpub = `xpub${'6'.repeat(107)}`;
  if (version >= 3) {
    await insert('account_keys', { id: uuid(0x3001), project_id: PROJECT, network: 'devnet', xpub, created_at: AT });
  }
  const address = (n: number, extra: object = {}) => ({
    ...{
      id: uuid(0x4000 + n),
      project_id: PROJECT,
      network: 'devnet',
      account: bytes(20, n),
      position: n,
      created_at: AT,
    },
    ...{ address: addressOf(n), policy: 'tail', ...extra },
  });
  await insert(
    'addresses',
    address(1),
    address(2, { retired_at: LATER }),
    address(3, since(3, { account_key_id: uuid(0x3001), derivation_index: 4 })),
    { ...address(4), project_id: uuid(0x1002), network: 'nile', policy: 'exact', position: 1 },
  );
  const invoice = (n: number, status: string, extra: object = {}) => ({
    ...{ id: uuid(0x5000 + n), project_id: PROJECT, network: 'devnet', address_id: uuid(0x4001) },
    ...{
      idempotency_key: `key-${n}`,
      external_id: `${ODD}-${n}`,
      requested_micro: 25_000_000,
      payable_micro: 25_000_000 + n,
    },
    ...{ status, checkout_token: `token-of-invoice-${n}`.padEnd(20, 'x'), created_at: AT, expires_at: LATER },
    ...{
      event_count: 0,
      paid_transfer_id: null,
      ...since(3, { api_key_id: KEY }),
      ...since(28, { options: OPTIONS }),
      ...extra,
    },
  });
  await insert(
    'invoices',
    invoice(1, 'PENDING'),
    invoice(2, 'CONFIRMING', { event_count: 1 }),
    invoice(3, 'EXPIRED', { event_count: 1 }),
    invoice(4, 'PAID', { event_count: 2, paid_transfer_id: uuid(0x6001) }),
    invoice(5, 'PENDING', { address_id: uuid(0x4002) }),
    { ...invoice(6, 'PENDING'), project_id: uuid(0x1002), network: 'nile', address_id: uuid(0x4004) },
  );
  const proof = since(2, {
    producer: bytes(20, 21),
    verified: 'agreed:2',
    nodes: ['http://a.example', 'http://b.example'],
  });
  const transfer = (n: number, kind: string, extra: object = {}) => ({
    ...{ id: uuid(0x6000 + n), project_id: PROJECT, network: 'devnet', address_id: uuid(0x4001), tx_id: bytes(32, n) },
    ...{
      log_index: n,
      block_number: 100 + n,
      block_id: bytes(32, 100 + n),
      block_time: AT,
      from_address: `T${'p'.repeat(33)}`,
    },
    ...{
      amount_micro: 25_000_004,
      kind,
      invoice_id: null,
      reserved_micro: null,
      recorded_at: LATER,
      ...proof,
      ...extra,
    },
  });
  const paid = { invoice_id: uuid(0x5004), reserved_micro: 25_000_004 };
  await insert(
    'transfers',
    transfer(1, 'matched', paid),
    transfer(2, 'duplicate', paid),
    transfer(3, 'unmatched', { amount_micro: '123456789012345678901234567890' }),
  );
  if (version >= 2) {
    await insert('outgoing_transfers', {
      ...{ network: 'devnet', tx_id: bytes(32, 9), log_index: 0, project_id: PROJECT, address_id: uuid(0x4001) },
      ...{
        block_number: 104,
        block_id: bytes(32, 104),
        block_time: AT,
        to_address: `T${'q'.repeat(33)}`,
        amount_micro: 5,
      },
      ...{ verified: 'proven', nodes: [], recorded_at: LATER },
      ...since(40, { mac: bytes(24, 41) }),
    });
    await insert('balance_checks', {
      ...{ address_id: uuid(0x4001), project_id: PROJECT, network: 'devnet', opening_micro: -3, opening_block: 1 },
      ...{ good_block: 2, checked_block: 3, balance_micro: 4, expected_micro: -5, node: 'http://a.example' },
      ...{ checked_at: AT, due_at: LATER },
    });
    await insert(
      'producer_sets',
      ...[1, 2].map(() => ({
        ...{ network: 'devnet', adopted_at: AT, chain_time: AT, replaced_after: AT, reason: 'first' },
        ...{ producers: '[{"address": "T1"}]', nodes: ['http://a.example'] },
      })),
    );
    await insert('producer_confirmations', { network: 'devnet', confirmed_at: AT });
    await insert('chain_status', { network: 'devnet', updated_at: AT, status: '{}' });
    await insert('alarms', {
      id: uuid(0x7001),
      network: 'devnet',
      kind: 'blind',
      subject: '',
      detail: ODD,
      raised_at: AT,
    });
  }
  if (version >= 3) {
    await insert('transfer_resolutions', {
      ...{
        project_id: PROJECT,
        transfer_id: uuid(0x6003),
        resolution: 'refunded',
        note: ODD,
        invoice_id: uuid(0x5003),
      },
      ...{ resolved_by: 'somebody', resolved_at: AT },
    });
    await insert('operator_actions', {
      ...{ project_id: PROJECT, action: 'address.added', subject: 'T1', detail: '{"policy": "tail"}' },
      ...{ acted_by: 'somebody', acted_at: AT },
    });
    await insert('allocation_hints', {
      ...{ project_id: PROJECT, policy: 'tail', from_micro: 1, below_micro: 2, position: 1, epoch: 0 },
    });
    await insert('refused_amounts', { project_id: PROJECT, requested_micro: 5, refused_at: AT });
  }
  if (version >= 7) {
    const decided = { annulled_at: AT, annulled_by: 'somebody', reason: ODD };
    const denied = transfer(4, 'unmatched', { amount_micro: 44 });
    await insert('transfers', denied);
    await insert('transfer_annulments', {
      ...{ transfer_id: denied.id, project_id: PROJECT, denied_by: bytes(32, 4), ...decided },
    });
    await insert('transfers', { ...denied, id: uuid(0x6005), amount_micro: 45, correction: 1 });
    const left = {
      ...{ network: 'devnet', tx_id: bytes(32, 10), log_index: 0, project_id: PROJECT, address_id: uuid(0x4001) },
      ...{ block_number: 104, block_id: bytes(32, 104), block_time: AT, to_address: `T${'q'.repeat(33)}` },
      ...{ verified: 'proven', nodes: [], recorded_at: LATER },
      ...since(40, { mac: bytes(24, 42) }),
    };
    await insert('outgoing_transfers', { ...left, amount_micro: 6 });
    await insert('outgoing_annulments', {
      ...{ network: 'devnet', tx_id: bytes(32, 10), log_index: 0, correction: 0, denied_by: bytes(32, 5), ...decided },
    });
    await insert('outgoing_corrections', { ...left, amount_micro: 7, correction: 1 });
    const passed = { network: 'devnet', number: 99, passed_at: AT, passed_by: 'somebody', reason: ODD };
    await insert('passed_blocks', { ...passed, block_id: bytes(32, 99), digest: bytes(32, 98) });
    const action = { project_id: null, action: 'block.passed', subject: '99', detail: '{}' };
    await insert('operator_actions', { ...action, acted_by: 'somebody', acted_at: AT });
  }
  if (version >= 41) {
    await insert('alarms', {
      ...{ id: uuid(0x7002), network: 'devnet', kind: 'row-changed', subject: 'x', detail: ODD, raised_at: AT },
      ...{ mac: bytes(24, 43), resolved_at: LATER, needs_closing: true, closed_mac: bytes(24, 44) },
    });
    await insert('ledger_proofs', { key_id: 'ab'.repeat(8), proven_at: AT, mac: bytes(24, 45) });
  }
  if (version >= 10) await insertPeople(insert);
  if (version >= 16) {
    const listed = { network: 'devnet', subject: 'transfers', number: 1, content: Buffer.from(uuid(0x6001), 'utf8') };
    await insert('inventory_pages', { ...listed, id: uuid(0xa001), mac: bytes(24, 1) });
  }
  if (version >= 22) {
    const sent = { network: 'devnet', tx_id: bytes(32, 9), log_index: 0 };
    await insert('transfer_refunds', {
      ...{ ...sent, transfer_id: uuid(0x6003), project_id: PROJECT, refunded_at: AT, mac: bytes(24, 1) },
    });
  }
  if (version >= 30) {
    await insert('untold_transfers', { transfer_id: uuid(0x6003), project_id: PROJECT, network: 'devnet' });
  }
  if (version >= 43) {
    const [tx_id, network] = ['ab'.repeat(32), 'devnet'];
    await insert('set_aside', {
      ...{ id: `${network} transfer ${tx_id} 0`, network, content: '{"transfers": []}', account: bytes(20, 1) },
      ...{ amount_micro: 5, reason: ODD, set_aside_at: AT, tries: 1, due_at: LATER, mac: bytes(24, 1) },
    });
  }
  if (version >= 17) {
    const channel = { id: uuid(0xb001), kind: 'ntfy', name: ODD, shown: ODD, quiet_from: 1320, quiet_to: 420 };
    await insert('notify_channels', {
      ...{
        ...channel,
        summary_at: 480,
        time_zone: 'Europe/Berlin',
        master_key_id: 'ab'.repeat(8),
        sealed: bytes(40, 3),
      },
      ...{ created_at: AT, failing_since: AT, failures: 2, due_at: LATER, last_error: ODD, last_sent_at: AT },
    });
    const told = { channel_id: channel.id, about: `alarm:${uuid(0xb002)}`, phase: 'raised', is_urgent: true };
    await insert('notifications', { ...told, id: uuid(0xb003), title: ODD, body: ODD, created_at: AT });
  }
  await insert('chain_cursors', {
    ...{ network: 'devnet', solid_number: 103, solid_id: bytes(32, 103), solid_time: AT, updated_at: LATER },
    ...since(2, { genesis_id: bytes(32, 1), halted_at: AT, halt_reason: ODD }),
    ...since(36, { live_time: AT, live_at: AT }),
  });
  await insert('head_blocks', { network: 'devnet', number: 104, block_id: bytes(32, 104), block_time: LATER });
  await insert('sightings', {
    ...{
      network: 'devnet',
      block_number: 104,
      tx_id: bytes(32, 50),
      log_index: 2,
      project_id: PROJECT,
      invoice_id: uuid(0x5002),
    },
    ...{ from_address: `T${'p'.repeat(33)}`, amount_micro: 25_000_002, ...since(5, { position: 7 }) },
  });
  if (version >= 36) {
    await insert('arrivals', {
      ...{ network: 'devnet', tx_id: bytes(32, 50), log_index: 2, address_id: uuid(0x4001) },
      ...{ amount_micro: 25_000_002, first_time: LATER },
    });
  }
  const event = (n: number, type: string, extra: object) => ({
    ...{
      id: uuid(0x8000 + n),
      project_id: PROJECT,
      network: 'devnet',
      type,
      sequence: 1,
      body: `{"odd":${JSON.stringify(ODD)}}`,
    },
    ...{ created_at: `2026-09-01 12:00:0${n}+00`, ...since(4, { position: n }), ...extra },
  });
  if (version >= 4) await insert('event_streams', { project_id: PROJECT, last_position: version >= 44 ? 6 : 5 });
  await insert(
    'events',
    event(1, 'invoice.confirming', { invoice_id: uuid(0x5002) }),
    event(2, 'invoice.confirming', { invoice_id: uuid(0x5004) }),
    event(3, 'invoice.paid', { invoice_id: uuid(0x5004), transfer_id: uuid(0x6001), sequence: 2 }),
    event(4, 'transfer.duplicate', { transfer_id: uuid(0x6002) }),
    event(5, 'invoice.expired', { invoice_id: uuid(0x5003) }),
  );
  if (version >= 44) {
    const claim = { project_id: PROJECT, invoice_id: uuid(0x5003) };
    await insert('claim_requests', { ...claim, network: 'devnet', tx_id: bytes(32, 8), requested_at: AT });
    await insert('events', event(6, 'transfer.claimed', { transfer_id: uuid(0x6003) }));
    await insert('transfer_claims', {
      ...{ ...claim, transfer_id: uuid(0x6003), event_id: uuid(0x8006), claimed_at: AT, mac: bytes(24, 1) },
    });
  }
  const secret = version >= 4 ? null : `whsec_${'A'.repeat(43)}=`;
  await insert(
    'webhook_endpoints',
    {
      id: uuid(0x9001),
      project_id: PROJECT,
      network: 'devnet',
      url: 'https://shop.example/hook',
      secret,
      created_at: AT,
    },
    {
      ...{
        id: uuid(0x9002),
        project_id: PROJECT,
        network: 'devnet',
        url: 'https://gone.example/',
        secret,
        created_at: AT,
      },
      ...{ failing_since: AT, disabled_at: LATER, disabled_reason: 'it answered 410' },
      ...since(4, { description: ODD, event_types: ['invoice.paid'], consecutive_failures: 9, open_until: LATER }),
      ...since(27, { adapter: 'epusdt', currency: 'CNY', rate_micro: 7_200_000 }),
      // Since 0033 an adapter has none of these.
      ...since(27, { failing_since: null, consecutive_failures: 0, open_until: null }),
      ...since(31, {
        rate_source: '{"min":"6.5","max":"8"}',
        read_micro: 7_190_000,
        read_at: AT,
        read_mac: bytes(24, 2),
      }),
      ...since(35, { rate_min_micro: 6_500_000, rate_max_micro: 8_000_000 }),
    },
  );
  if (version >= 4) {
    await insert('webhook_secrets', {
      ...{ id: uuid(0xa001), project_id: PROJECT, endpoint_id: uuid(0x9001), master_key_id: '0123456789abcdef' },
      ...{ sealed: bytes(60, 77), created_at: AT },
    });
  }
  if (version >= 27) {
    await insert('adapter_orders', {
      ...{ project_id: PROJECT, invoice_id: uuid(0x5004), endpoint_id: uuid(0x9001), dialect: 'epay' },
      ...{ notify_url: 'https://shop.example/notify', return_url: 'https://shop.example/', amount: '100.00' },
      ...{ name: ODD, type: 'usdt', param: ODD, created_at: AT, mac: bytes(24, 1) },
    });
  }
  const delivery = (n: number, status: string, extra: object = {}) => ({
    ...{ event_id: uuid(0x8000 + n), endpoint_id: uuid(0x9001), project_id: PROJECT, sequence: 1, status },
    ...{ attempt_count: 1, next_attempt_at: AT, created_at: AT, ...extra },
  });
  await insert(
    'deliveries',
    delivery(1, 'pending', { invoice_id: uuid(0x5002), attempt_count: 0 }),
    delivery(2, 'delivered', { invoice_id: uuid(0x5004), finished_at: LATER, last_status: 200 }),
    delivery(3, 'dead', { finished_at: LATER, last_error: ODD, ...since(4, { max_attempts: 13 }) }),
  );
  if (version >= 3) {
    await insert('delivery_attempts', {
      ...{ event_id: uuid(0x8002), endpoint_id: uuid(0x9001), attempt: 1, attempted_at: AT, status: 500, error: ODD },
      ...since(4, { latency_ms: 12, answer: ODD }),
    });
  }
  if (version >= 5) {
    await insert(
      'receipt_keys',
      {
        ...{ id: 'k'.repeat(43), public_key: bytes(32, 1), master_key_id: '0123456789abcdef', sealed: bytes(60, 78) },
        created_at: AT,
      },
      { id: 'r'.repeat(43), public_key: bytes(32, 2), created_at: AT, retired_at: LATER },
    );
  }
  if (version >= 11) {
    const key = { role: 'owner', created_at: AT };
    await insert(
      'admin_keys',
      {
        ...{ ...key, id: uuid(0x2101), name: ODD.slice(0, 60), secret_sha256: bytes(32, 17), projects: [PROJECT] },
        ...{ allowed_cidrs: ['10.0.0.0/8'], expires_at: '2099-01-01', last_used_at: LATER },
      },
      { ...key, id: uuid(0x2102), name: 'revoked', secret_sha256: bytes(32, 18), revoked_at: AT },
    );
  }
  if (version >= 12) {
    const id = 'req_01h455vb4pex5vsknk084sn02q';
    await insert('requests', {
      ...{ slot: 4, at: '2026-09-01 12:00:00+00', project_id: PROJECT, first_id: id, last_id: id, count: 1 },
      requests: JSON.stringify([{ id, method: 'GET', route: '/v1/events', status: 200, took_ms: 2, external_id: ODD }]),
    });
  }
  if (version >= 13) {
    const change = {
      ...{ project_id: PROJECT, network: 'devnet', policy: 'tail', first_index: 0, actor_kind: 'console' },
      ...{ actor_id: uuid(0x2201), acted_by: ODD, proposed_at: AT, due_at: '2026-09-02 12:00:00.123456+00' },
    };
    await insert(
      'address_changes',
      { ...change, id: uuid(0x2301), kind: 'add', addresses: [addressOf(31)], origin: '192.0.2.7' },
      {
        ...{ ...change, id: uuid(0x2302), kind: 'derive', addresses: [addressOf(32)], indexes: [4] },
        ...{ xpub, key_first_index: 0, auto_derive_limit: 100, state: 'failed', reason: ODD },
        ...{ ended_at: LATER, ended_by: 'quittance' },
      },
    );
  }
  await insert('leases', { name: 'watcher:devnet', holder: 'somebody', epoch: 3, expires_at: AT });
  await client.query('commit');
}

/** Returns every row of the given tables and columns as text, in a fixed order. */
export async function readRows(
  client: pg.ClientBase,
  columns: ReadonlyMap<string, readonly string[]>,
): Promise<Record<string, string[]>> {
  const rows: Record<string, string[]> = {};
  for (const [table, names] of columns) {
    const text = `select row(${names.join(', ')})::text as row from ${table} order by 1`;
    rows[table] = (await client.query<{ row: string }>(text)).rows.map(({ row }) => row);
  }
  return rows;
}

/** Returns the tables of a database with their columns. */
export async function readColumns(client: pg.ClientBase): Promise<Map<string, string[]>> {
  const { rows } = await client.query<{ name: string; columns: string[] }>(
    `select c.relname::text as name, array_agg(a.attname::text order by a.attnum) as columns
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition group by c.relname order by 1`,
  );
  return new Map(rows.map(({ name, columns }) => [name, columns]));
}

type Insert = (table: string, ...rows: Record<string, unknown>[]) => Promise<void>;

/** Inserts two people: one with every means of signing in, and one who was removed. */
async function insertPeople(insert: Insert): Promise<void> {
  const [ann, bert] = [uuid(0x9001), uuid(0x9002)];
  await insert(
    'people',
    {
      ...{ id: ann, login: 'ann@shop.example', name: 'Grüße ₮', role: 'owner', created_at: AT, totp_step: 5 },
      ...{ password_hash: 'scrypt$15$8$3$AA==$AA==', master_key_id: 'ab'.repeat(8), totp_sealed: bytes(48, 7) },
    },
    {
      ...{ id: bert, login: 'bert', name: 'bert', role: 'viewer', projects: [PROJECT], created_at: AT },
      ...{ removed_at: LATER, misses: 3, missed_at: AT },
    },
  );
  await insert('passkeys', {
    ...{ id: bytes(32, 1), person_id: ann, public_key: bytes(77, 2), counter: 4294967295, transports: ['usb'] },
    ...{ name: 'laptop', created_at: AT, last_used_at: LATER },
  });
  for (const [n, extra] of [{}, { ended_at: LATER }].entries()) {
    await insert('recovery_codes', { sha256: bytes(32, n), person_id: ann, created_at: AT, ...extra });
  }
  const kind = { person_id: bert, kind: 'invite', created_at: AT, expires_at: AT };
  await insert('invitations', { sha256: bytes(32, 3), ...kind });
  await insert('sessions', {
    ...{ id: uuid(0x9101), sha256: bytes(32, 4), person_id: ann, proof: 'passkey', created_at: AT, seen_at: LATER },
    ...{ origin: '203.0.113.7', client_network: '203.0.113.7', user_agent: ODD },
  });
  await insert('spent_challenges', { sha256: bytes(32, 5), expires_at: AT });
}

/**
 * Makes the database look as if no process with a master key has run. Otherwise the next one would be refused for a key that sealed nothing
 * here.
 */
export async function forgetProofs(client: pg.ClientBase): Promise<void> {
  await client.query(
    `set session_replication_role = 'replica'; delete from ledger_proofs; set session_replication_role = 'origin'`,
  );
}
