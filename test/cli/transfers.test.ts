import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type AccountHex, accountToAddress } from '@quittance/tron/address';
import Schema from 'typebox/schema';
import { beforeAll, describe, expect, test } from 'vitest';
import { encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { type UnixMs, unixMs } from '../../src/core/domain/time.ts';
import { insertOutgoing, insertTransfers, type NewTransfer } from '../../src/core/payments/record-transfers.ts';
import { insertAddress } from '../../src/core/store/ledger/addresses.ts';
import { insertProject } from '../../src/core/store/ledger/projects.ts';
import { resolveTransfers } from '../../src/faces/operator/subjects/transfer-decisions.ts';
import { listTransfers, showTransfers } from '../../src/faces/operator/subjects/transfers.ts';
import { longTest } from '../support/some-cases.ts';
import { letRowsStandAlone } from '../support/stand-alone.ts';
import { type CliOutput, newDirectory, openLedger, runCli, startProcess } from './run-cli.ts';

const { database, db, env, query } = await openLedger();

function cli(...args: string[]): Promise<CliOutput> {
  return runCli(['transfers', ...args], { env });
}

/** The ids of a test are in the order of their creation. */
let count = 0;
function newId(): string {
  count += 1;
  return uuidV7(1_788_000_000_000 + count, randomBytes(10));
}

type Shop = { id: string; projectId: string; addressId: string; address: string };

async function newShop(name: string): Promise<Shop> {
  const [id, addressId] = [newId(), newId()];
  await insertProject(db, { id, name, network: 'nile', maxSurchargeMicro: 10_000n, invoiceLifetimeMs: 1_800_000 });
  const account = randomBytes(20).toString('hex') as AccountHex;
  const address = accountToAddress(account);
  await insertAddress(db, { id: addressId, projectId: id, account, address });
  return { id, projectId: encodeId('prj', id), addressId, address };
}

const DAY = Date.parse('2026-09-01T12:00:00Z');

async function newInvoice(shop: Shop, externalId: string, payableMicro: bigint): Promise<string> {
  const id = newId();
  await query(
    `insert into invoices (id, project_id, network, address_id, idempotency_key, external_id, requested_micro,
       payable_micro, checkout_token, created_at, expires_at)
     values ($1, $2, 'nile', $3, $4, $5, $6, $6, $7, $8, $9)`,
    [
      id,
      shop.id,
      shop.addressId,
      id,
      externalId,
      payableMicro.toString(),
      randomBytes(10).toString('hex'),
      new Date(DAY),
      new Date(DAY + 1_800_000),
    ],
  );
  return id;
}

const SENDER = accountToAddress('b'.repeat(40) as AccountHex);

function transferTo(shop: Shop, amountMicro: bigint, change: Partial<NewTransfer> = {}): NewTransfer {
  return {
    id: newId(),
    projectId: shop.id,
    addressId: shop.addressId,
    txId: randomBytes(32).toString('hex'),
    logIndex: 0,
    blockNumber: 1000 + count,
    blockId: randomBytes(32).toString('hex'),
    blockTime: unixMs(DAY + count * 3000) as UnixMs,
    fromAddress: SENDER,
    amountMicro,
    kind: 'unmatched',
    invoiceId: null,
    producer: 'c'.repeat(40) as AccountHex,
    verified: 'agreed:2',
    nodes: ['https://one.example', 'https://two.example'],
    ...change,
  };
}

async function receive(...transfers: NewTransfer[]): Promise<string[]> {
  await insertTransfers(db, 'nile', transfers);
  return transfers.map(({ id }) => encodeId('trf', id));
}

/** Adds a paid invoice and its transfer. */
async function newPaid(shop: Shop, externalId: string, payableMicro: bigint): Promise<[invoice: string, trf: string]> {
  const invoiceId = await newInvoice(shop, externalId, payableMicro);
  const transfer = transferTo(shop, payableMicro, { kind: 'matched', invoiceId });
  await letRowsStandAlone(database.owner);
  const [trf = ''] = await receive(transfer);
  await query(`update invoices set status = 'PAID', paid_transfer_id = $2 where id = $1`, [invoiceId, transfer.id]);
  return [invoiceId, trf];
}

/** RFC 4180, implemented independently so that the program's own rules don't judge themselves. */
function parseCsv(text: string): string[][] {
  const rows: string[][] = [];
  let [row, cell, isQuoted]: [string[], string, boolean] = [[], '', false];
  for (let i = 0; i < text.length; i++) {
    const character = text.charAt(i);
    if (isQuoted) {
      if (character !== '"') cell += character;
      else if (text.charAt(i + 1) === '"') cell += text.charAt(i++);
      else isQuoted = false;
    } else if (character === '"') isQuoted = true;
    else if (character === ',') [row, cell] = [[...row, cell], ''];
    else if (text.startsWith('\r\n', i)) {
      rows.push([...row, cell]);
      [row, cell] = [[], ''];
      i += 1;
    } else cell += character;
  }
  expect({ isQuoted, rest: cell, row }).toEqual({ isQuoted: false, rest: '', row: [] });
  return rows;
}

function csvObjects(text: string): Record<string, string>[] {
  const [names = [], ...rows] = parseCsv(text);
  return rows.map((row) => {
    expect(row).toHaveLength(names.length);
    return Object.fromEntries(names.map((name, index) => [name, row[index] ?? '']));
  });
}

test('with no transfers, list says so and an export holds none', async () => {
  await newShop('Shop');
  const [list, listJson, csv, json] = await Promise.all([
    cli('list'),
    cli('list', '--json'),
    cli('export'),
    cli('export', '--format', 'json'),
  ]);
  expect(list).toMatchObject({ code: 0, stdout: '', stderr: expect.stringContaining('no transfers await a decision') });
  expect(listJson.json).toEqual({ data: [], nextBefore: null });
  expect(parseCsv(csv.stdout)).toEqual([expect.arrayContaining(['direction', 'amount', 'transferId', 'resolution'])]);
  expect(JSON.parse(json.stdout)).toEqual({ data: [] });
});

describe('a project with open, resolved, duplicate and matched transfers', () => {
  let shop: Shop;
  let [paid, matched, duplicate, short, dust] = ['', '', '', '', ''];
  let own: string[];
  beforeAll(async () => {
    shop = await newShop('Desk');
    const [paidId, trf] = await newPaid(shop, 'paid-1', 25_000_009n);
    [paid, matched] = [encodeId('inv', paidId), trf];
    await newInvoice(shop, 'open-1', 30_000_008n);
    [duplicate = '', short = '', dust = ''] = await receive(
      transferTo(shop, 25_000_009n, { kind: 'duplicate', invoiceId: paidId }),
      transferTo(shop, 29_000_008n),
      transferTo(shop, 1n),
    );
    own = ['--project', shop.projectId];
  });

  test('list shows the open ones that pay nothing, the newest first, page by page, each with a reason', async () => {
    const [all, first, text] = await Promise.all([
      cli('list', ...own, '--json'),
      cli('list', ...own, '--limit', '2', '--json'),
      cli('list', ...own, '--limit', '2'),
    ]);
    expect(all.json.data.map(({ transferId }: { transferId: string }) => transferId)).toEqual([dust, short, duplicate]);
    expect(all.json.nextBefore).toBeNull();
    expect(all.json.data[2]).toMatchObject({
      amount: '25.000009',
      from: SENDER,
      to: shop.address,
      kind: 'duplicate',
      invoice: { invoiceId: paid, externalId: 'paid-1', status: 'PAID' },
      resolution: null,
    });
    for (const { reason } of all.json.data) {
      expect(reason).toEqual({ code: expect.stringMatching(/^[A-Z_]+$/), confidence: expect.any(String) });
    }
    expect(first.json).toMatchObject({ data: [{ transferId: dust }, { transferId: short }], nextBefore: short });
    expect(text.stderr).toContain(`--before ${short}`);
    expect(text.stdout.split('\n')[0]).toMatch(/^TRANSFER +TIME \(UTC\) +AMOUNT +FROM +TO +KIND +LIKELY CAUSE/);
    for (const line of text.stdout.split('\n')) expect(line.length).toBeLessThan(200);
    const second = await cli('list', ...own, '--limit', '2', '--before', short, '--json');
    expect(second.json).toMatchObject({ data: [{ transferId: duplicate }], nextBefore: null });
  });

  test('list filters by kind and by day; the day given to --to belongs to it', async () => {
    const ids = async (...args: string[]) =>
      (await cli('list', ...own, ...args, '--json')).json.data.map(
        ({ transferId }: { transferId: string }) => transferId,
      );
    const [onlyMatched, every, onlyDuplicate, thatDay, dayAfter, before] = await Promise.all([
      ids('--kind', 'matched'),
      ids('--kind', 'all'),
      ids('--kind', 'duplicate'),
      ids('--from', '2026-09-01', '--to', '2026-09-01'),
      ids('--from', '2026-09-02'),
      ids('--to', '2026-09-01T12:00:00Z'),
    ]);
    expect(onlyMatched).toEqual([matched]);
    expect(every).toEqual([dust, short, duplicate, matched]);
    expect(onlyDuplicate).toEqual([duplicate]);
    expect(thatDay).toEqual([dust, short, duplicate]);
    expect([dayAfter, before]).toEqual([[], []]);
  });

  test.each([
    [['list', '--limit', '501'], '--limit is "501": use 1 to 500'],
    [['list', '--limit', '0'], 'use 1 to 500'],
    [['list', '--kind', 'odd'], '--kind is "odd": choose unmatched, duplicate, matched or all'],
    [['list', '--kind', 'matched', '--open'], 'leave out --open'],
    [['list', '--open', '--all'], 'cannot be used'],
    [['list', '--from', '2026-02-30'], '--from is "2026-02-30"'],
    [['list', '--to', '30m'], '--to is "30m"'],
    [['list', '--from', '2026-09-02', '--to', '2026-09-01'], 'is not before'],
    [['list', '--before', 'trf_x'], '"trf_x" is not a transfer id'],
    [['show', 'order-1'], 'neither a transfer id (trf_…) nor a transaction id'],
    [['export', '--format', 'xls'], '--format is "xls": choose csv or json'],
    [['export', '--direction', 'up'], 'choose in, out or both'],
    [['export', '--format', 'csv', '--json'], 'cannot be combined'],
    [['export', '--output', '/'], 'is not a file'],
    [['export', '--output', '/no/such/folder/x.csv'], 'cannot be written (ENOENT)'],
  ])('%j is refused with what is wrong', async (args, message) => {
    const scope = args[0] === 'show' ? [] : own;
    const { code, stdout, stderr } = await cli(...args, ...scope);
    expect(code).toBe(2);
    expect(stdout + stderr).toContain(message);
  });

  test('show tells the evidence, every cause with its explanation, and the history', async () => {
    const { json } = await cli('show', short, '--json');
    const [shown] = json.data;
    expect(shown).toMatchObject({
      transferId: short,
      projectId: shop.projectId,
      network: 'nile',
      kind: 'unmatched',
      amount: '29.000008',
      evidence: {
        producer: accountToAddress('c'.repeat(40) as AccountHex),
        verified: 'agreed:2',
        nodes: ['https://one.example', 'https://two.example'],
      },
      invoice: null,
      events: [],
      resolutions: [],
    });
    expect(shown.causes.length).toBeGreaterThan(0);
    for (const { code, explanation } of shown.causes) expect([code, explanation]).not.toContain('');
    const { stdout, stderr } = await cli('show', short);
    expect(stdout).toMatch(/^verified +agreed:2, shown by https:\/\/one\.example, https:\/\/two\.example$/m);
    expect(stdout).toMatch(/^resolution +open/m);
    expect(stdout).toContain('LIKELY CAUSES');
    expect(stderr).toContain(`quittance transfers resolve ${short}`);
  });

  test('show of a transaction tells of each transfer to us in it; an unknown one is not found', async () => {
    const txId = randomBytes(32).toString('hex');
    const other = await newShop('Neighbour');
    const sent = await receive(
      transferTo(shop, 5n, { txId, logIndex: 4 }),
      transferTo(other, 6n, { txId, logIndex: 1 }),
    );
    const [found, linked, unknown, unknownId] = await Promise.all([
      cli('show', txId.toUpperCase(), '--json'),
      cli('show', `https://tronscan.org/#/transaction/${txId}`, '--json'),
      cli('show', '0'.repeat(64), '--json'),
      cli('show', encodeId('trf', newId()), '--json'),
    ]);
    expect(found.json.data.map(({ transferId }: { transferId: string }) => transferId)).toEqual(sent.reverse());
    expect(linked.json).toEqual(found.json);
    expect(unknown).toMatchObject({
      code: 3,
      json: { error: { code: 'NOT_FOUND', message: expect.stringContaining(`"quittance explain ${'0'.repeat(64)}"`) } },
    });
    expect(unknownId).toMatchObject({ code: 3, json: { error: { code: 'NOT_FOUND' } } });
    await cli('resolve', ...sent, '--as', 'ignored');
  });

  test('resolve notes who, when, why and for which invoice, leaves the invoice alone, and tells what was there before', async () => {
    const first = await cli('resolve', short, '--as', 'refunded', '--note', 'tx 9f…', '--by', 'Ada', '--json');
    expect(first).toMatchObject({ code: 0, json: { resolution: 'refunded', transfers: [{ before: null }] } });
    const args = ['resolve', short, '--as', 'fulfilled-manually', '--invoice', 'open-1', '--by', 'Grace'];
    const second = await cli(...args, '--json');
    expect(second.json).toMatchObject({
      invoice: { externalId: 'open-1', status: 'PENDING' },
      transfers: [{ transferId: short, before: { resolution: 'refunded', note: 'tx 9f…', resolvedBy: 'Ada' } }],
    });
    const third = await cli(...args);
    expect(third.stdout).toMatch(new RegExp(`${short} +fulfilled-manually +fulfilled-manually by Grace`));
    expect(third.stderr).toContain('stays PENDING: PAID always means one transfer of exactly the payable amount');
    const { json } = await cli('show', short, '--json');
    expect(json.data[0].resolutions.map(({ resolvedBy }: { resolvedBy: string }) => resolvedBy)).toEqual([
      'Ada',
      'Grace',
      'Grace',
    ]);
    expect(Date.parse(json.data[0].resolutions[0].resolvedAt)).toBeGreaterThan(Date.now() - 60_000);
    expect(await query(`select status from invoices where external_id = 'open-1'`)).toEqual([{ status: 'PENDING' }]);
    const [open, resolved] = await Promise.all([
      cli('list', ...own, '--json'),
      cli('list', ...own, '--resolved', '--kind', 'unmatched', '--json'),
    ]);
    const idsOf = ({ json: { data } }: CliOutput) => data.map(({ transferId }: { transferId: string }) => transferId);
    expect(idsOf(open)).toEqual([dust, duplicate]);
    expect(idsOf(resolved)).toContain(short);
  });

  test('without --by, the record names the user of the operating system', async () => {
    const { json } = await runCli(['transfers', 'resolve', dust, '--as', 'ignored', '--json'], {
      env: { ...env, SUDO_USER: 'operator-7' },
    });
    expect(json.resolvedBy).toBe('operator-7');
  });

  test('several are resolved together or, if one cannot be, none', async () => {
    const ids = await receive(transferTo(shop, 2n), transferTo(shop, 3n));
    const refused = await cli('resolve', ...ids, matched, '--as', 'ignored', '--json');
    expect(refused).toMatchObject({
      code: 4,
      json: { error: { code: 'CONFLICT', message: expect.stringContaining('PAID is final') } },
    });
    expect(refused.json.error.errors).toEqual([{ subject: matched, message: `${matched} paid the invoice "paid-1"` }]);
    const stranger = encodeId('trf', newId());
    expect(await cli('resolve', ...ids, stranger, '--as', 'ignored', '--json')).toMatchObject({
      code: 3,
      json: { error: { errors: [{ subject: stranger }] } },
    });
    const open = (await cli('list', ...own, '--json')).json.data;
    expect(open.map(({ transferId }: { transferId: string }) => transferId)).toEqual(expect.arrayContaining(ids));
    const both = await cli('resolve', ...ids, ids[0] ?? '', '--as', 'ignored', '--json');
    expect(Schema.Errors(resolveTransfers.output, both.json)[1]).toEqual([]);
    expect(both.json.transfers.map(({ transferId }: { transferId: string }) => transferId)).toEqual(ids);
  });

  test('a list and what is shown of a transfer are the views that every face gets', async () => {
    expect(Schema.Errors(listTransfers.output, (await cli('list', ...own, '--all', '--json')).json)[1]).toEqual([]);
    for (const id of [short, matched, dust]) {
      expect(Schema.Errors(showTransfers.output, (await cli('show', id, '--json')).json)[1]).toEqual([]);
    }
  });

  test('every wrong argument of resolve is told at once', async () => {
    const { code, json } = await cli(
      ...['resolve', 'trf_x', '--as', 'lost', '--note', `${'n'.repeat(2001)}`, '--invoice', '', '--json'],
    );
    expect(code).toBe(2);
    expect(json.error.errors.map(({ subject }: { subject: string }) => subject)).toEqual([
      'trf_x',
      '--as',
      '--note',
      '--invoice',
    ]);
    const control = await cli('resolve', duplicate, '--as', 'ignored', '--note', 'a\u001b[2Jb', '--json');
    expect(control.json.error.errors[0].message).toContain('control character');
    const tooMany = await cli('resolve', ...Array<string>(501).fill(duplicate), '--as', 'ignored', '--json');
    expect(tooMany.json.error.errors[0].message).toContain('at most 500');
    expect(
      await query(
        `select from transfer_resolutions r join transfers t on t.id = r.transfer_id where t.kind = 'duplicate'`,
      ),
    ).toEqual([]);
  });

  test('a note of 2,000 characters is kept, counted as people count', async () => {
    const note = '€𝄞'.repeat(1000);
    expect(await cli('resolve', duplicate, '--as', 'own-deposit', '--note', note)).toMatchObject({ code: 0 });
    expect((await cli('show', duplicate, '--json')).json.data[0].resolutions[0].note).toBe(note);
  });

  test('an invoice of another project cannot be linked, by its id or by its externalId', async () => {
    const other = await newShop('Other');
    const foreign = encodeId('inv', await newInvoice(other, 'foreign-1', 7_000_000n));
    for (const name of [foreign, 'foreign-1']) {
      const refused = await cli('resolve', dust, '--as', 'ignored', '--invoice', name, '--json');
      expect(refused).toMatchObject({
        code: 3,
        json: { error: { message: expect.stringContaining('has no invoice') } },
      });
    }
    const [there = ''] = await receive(transferTo(other, 9n));
    const mixed = await cli('resolve', dust, there, '--as', 'ignored', '--invoice', 'foreign-1', '--json');
    expect(mixed).toMatchObject({ code: 4, json: { error: { message: expect.stringContaining('several projects') } } });
  });

  test('an export has every transfer once, with invoice, reason and resolution in force', async () => {
    const [csv, json] = await Promise.all([cli('export', ...own), cli('export', ...own, '--json')]);
    const rows = csvObjects(csv.stdout);
    const expected = (await query('select id from transfers where project_id = $1 order by id', [shop.id])).map(
      ({ id }) => encodeId('trf', String(id)),
    );
    expect(rows.map(({ transferId }) => transferId)).toEqual(expected);
    expect(rows[0]).toMatchObject({ kind: 'matched', externalId: 'paid-1', reason: '', resolution: '' });
    expect(rows.find(({ transferId }) => transferId === short)).toMatchObject({
      direction: 'in',
      amount: '29.000008',
      kind: 'unmatched',
      resolution: 'fulfilled-manually',
      resolvedBy: 'Grace',
      note: '',
      resolvedExternalId: 'open-1',
      reason: expect.stringMatching(/^[A-Z_]+$/),
    });
    const asText = json.json.data.map((row: Record<string, unknown>) =>
      Object.fromEntries(Object.entries(row).map(([name, value]) => [name, value === null ? '' : String(value)])),
    );
    expect(asText).toEqual(rows);
    const some = csvObjects((await cli('export', ...own, '--kind', 'duplicate', '--from', '2026-09-01')).stdout);
    expect(some.map(({ transferId }) => transferId)).toEqual([duplicate]);
  });
});

test('show tells of the events of every transfer in a transaction, however many endpoints there are', async () => {
  const shop = await newShop('Told');
  const endpoints = Array.from({ length: 30 }, () => newId());
  const txId = randomBytes(32).toString('hex');
  const sent = Array.from({ length: 40 }, (_, logIndex) => transferTo(shop, 5n, { txId, logIndex }));
  await receive(...sent);
  await query(
    `insert into webhook_endpoints (id, project_id, network, url)
     select id, $2, 'nile', 'https://shop.example/' || id from unnest($1::uuid[]) id`,
    [endpoints, shop.id],
  );
  await query(
    `insert into events (id, project_id, network, type, transfer_id, sequence, body)
     select id, $3, 'nile', 'transfer.unmatched', transfer_id, 1, '{}'
     from unnest($1::uuid[], $2::uuid[]) e (id, transfer_id)`,
    [sent.map(() => newId()), sent.map(({ id }) => id), shop.id],
  );
  await query(
    `insert into deliveries (event_id, endpoint_id, project_id, sequence)
     select e.id, w.id, e.project_id, 1 from events e, webhook_endpoints w
     where e.project_id = $1 and w.project_id = $1`,
    [shop.id],
  );
  const { json } = await cli('show', txId, '--json');
  expect(json.data).toHaveLength(sent.length);
  for (const { events } of json.data) expect(events).toHaveLength(endpoints.length);
});

describe('hostile texts', () => {
  let shop: Shop;
  const ids = new Map<string, string>();
  const externalIds = [
    '=HYPERLINK("http://evil.example","pay")',
    '  +1+1',
    '\t@SUM(A1)',
    '\r-2+3',
    '＝1+1',
    '\u202e-1',
    '\ufeff=1',
    'a;=1+1',
    'line\n=2+2',
    'say "hi", twice\r\nand again',
    '\u001b[31mred',
    '\u009b31mred',
    '[]',
  ];
  beforeAll(async () => {
    shop = await newShop('Hostile');
    for (const [index, externalId] of externalIds.entries()) {
      const [, trf] = await newPaid(shop, externalId, 1_000_009n + BigInt(index) * 1_000_000n);
      ids.set(trf, externalId);
    }
  });

  test('no cell of the CSV can start a formula, whatever a spreadsheet takes for the start of a cell; JSON has the text as it is', async () => {
    const [csv, json] = await Promise.all([
      cli('export', '--project', shop.projectId),
      cli('export', '--project', shop.projectId, '--json'),
    ]);
    for (const row of json.json.data) expect(row.externalId).toBe(ids.get(row.transferId));
    const rows = csvObjects(csv.stdout);
    expect(rows).toHaveLength(externalIds.length);
    for (const row of rows) {
      const text = ids.get(row['transferId'] ?? '') ?? '';
      expect(row['externalId']?.replaceAll("'", '')).toBe(text);
      for (const part of row['externalId']?.split(/[;\r\n\t]/) ?? []) {
        expect(part.normalize('NFKC')).not.toMatch(/^[\s\p{C}]*[=+\-@]/u);
      }
      expect(row['amount']).toMatch(/^\d+\.\d{6}$/);
    }
    expect(rows.at(-1)?.['externalId']).toBe('[]');
    expect(rows[0]?.['externalId']).toBe(`'${externalIds[0]}`);
  });

  test('nothing that is stored controls the terminal or reorders its text', async () => {
    const { stdout } = await cli('list', '--project', shop.projectId, '--kind', 'all');
    expect(stdout).toContain('�[31mred');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not come out.
    expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u0080-\u009f\u202a-\u202e\ufeff]/);
    expect(stdout.trimEnd().split('\n')).toHaveLength(externalIds.length + 1);
    const refused = await cli('resolve', ...ids.keys(), '--as', 'ignored');
    expect(refused.stderr).toContain('\\u009b31mred');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: as above.
    expect(refused.stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u0080-\u009f\u202a-\u202e\ufeff]/);
  });

  test('an amount far beyond int8 is shown and exported to its last digit', async () => {
    const huge = await newShop('Huge');
    const [trf = ''] = await receive(transferTo(huge, 2n ** 256n - 1n));
    const amount = `${(2n ** 256n - 1n) / 1_000_000n}.${((2n ** 256n - 1n) % 1_000_000n).toString().padStart(6, '0')}`;
    const [list, show, csv] = await Promise.all([
      cli('list', '--project', huge.projectId, '--json'),
      cli('show', trf, '--json'),
      cli('export', '--project', huge.projectId),
    ]);
    expect([list.json.data[0].amount, show.json.data[0].amount, csvObjects(csv.stdout)[0]?.['amount']]).toEqual([
      amount,
      amount,
      amount,
    ]);
  });
});

describe('an export of several batches', () => {
  let shop: Shop;
  const SIZE = 1203;
  beforeAll(async () => {
    shop = await newShop('Large');
    await receive(...Array.from({ length: SIZE }, (_, index) => transferTo(shop, BigInt(index + 1) * 7n)));
    const { addressId, id: projectId } = shop;
    const outgoing = Array.from({ length: 701 }, (_, index) => {
      const { producer: _p, kind: _k, invoiceId: _i, id: _id, fromAddress: _f, ...rest } = transferTo(shop, 5n);
      return { ...rest, projectId, addressId, toAddress: SENDER, txId: 'ab'.repeat(32), logIndex: index };
    });
    await insertOutgoing(db, 'nile', outgoing);
  });

  test('misses no transfer and has none twice, in and out', async () => {
    const { json } = await cli('export', '--project', shop.projectId, '--direction', 'both', '--json');
    const rows: { direction: string; amount: string; txId: string; logIndex: number; from: string }[] = json.data;
    const incoming = rows.filter(({ direction }) => direction === 'in');
    const outgoing = rows.filter(({ direction }) => direction === 'out');
    expect([incoming.length, outgoing.length]).toEqual([SIZE, 701]);
    expect(new Set(rows.map(({ txId, logIndex }) => `${txId} ${logIndex}`)).size).toBe(SIZE + 701);
    expect(outgoing.every(({ from }) => from === shop.address)).toBe(true);
    const only = await cli('export', '--project', shop.projectId, '--direction', 'out');
    expect(csvObjects(only.stdout)).toHaveLength(701);
  });

  longTest(
    'to a file is written whole, replaces what was there, follows a link, and is readable by its owner only',
    async () => {
      const folder = newDirectory();
      const [file, link] = [join(folder, 'ledger.csv'), join(folder, 'link.csv')];
      writeFileSync(file, 'old');
      symlinkSync(file, link);
      const { stdout } = await cli('export', '--project', shop.projectId, '--output', link);
      expect(stdout.trim()).toBe(`wrote ${SIZE} transfers to ${file}`);
      expect(csvObjects(readFileSync(file, 'utf8'))).toHaveLength(SIZE);
      expect(statSync(file).mode & 0o777).toBe(0o600);
      expect(readdirSync(folder).sort()).toEqual(['ledger.csv', 'link.csv']);
    },
  );

  test('to a file is JSON with --json, whose report names the format, and CSV where --format says so', async () => {
    const file = join(newDirectory(), 'ledger');
    const args = ['export', '--project', shop.projectId, '--output', file, '--json'];
    expect((await cli(...args)).json).toEqual({ file, format: 'json', transfers: SIZE });
    expect(JSON.parse(readFileSync(file, 'utf8')).data).toHaveLength(SIZE);
    expect((await cli(...args, '--format', 'csv')).json).toEqual({ file, format: 'csv', transfers: SIZE });
    expect(csvObjects(readFileSync(file, 'utf8'))).toHaveLength(SIZE);
  });

  test('that fails half-way leaves the file that was there, and nothing beside it', async () => {
    const folder = newDirectory();
    const file = join(folder, 'ledger.csv');
    writeFileSync(file, 'old');
    const broken = await newShop('Broken');
    await receive(...Array.from({ length: 600 }, () => transferTo(broken, 7n)));
    // A time in the second batch that no export can write.
    await query('alter table transfers drop constraint transfers_finite');
    await query(
      `insert into transfers (id, project_id, network, address_id, tx_id, log_index, block_number, block_id, block_time,
         from_address, amount_micro, kind, producer, verified, nodes)
       select $2, project_id, network, address_id, tx_id, 1, block_number, block_id, 'infinity', from_address, 1,
         'unmatched', producer, verified, nodes
       from transfers where project_id = $1 limit 1`,
      [broken.id, newId()],
    );
    const { code, json } = await cli('export', '--project', broken.projectId, '--output', file, '--json');
    expect({ code, error: json.error.code }).toEqual({ code: 1, error: 'FAILED' });
    expect(readFileSync(file, 'utf8')).toBe('old');
    expect(readdirSync(folder)).toEqual(['ledger.csv']);
  });

  longTest('ends quietly when its reader stops reading', async () => {
    const child = startProcess(['transfers', 'export', '--project', shop.projectId, '--format', 'json'], { env });
    let [seen, stderr] = [0, ''];
    child.stdout.on('data', (chunk: Buffer) => {
      seen += chunk.length;
      child.stdout.destroy();
    });
    child.stderr.on('data', (chunk) => {
      stderr += chunk;
    });
    const [code] = await once(child, 'close');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(seen).toBeGreaterThan(0);
  });
});
