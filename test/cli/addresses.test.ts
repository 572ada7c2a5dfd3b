import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startDevnet } from '@quittance/devnet';
import { type AccountXpub, deriveAddresses } from '@quittance/tron/account-xpub';
import { type AccountHex, accountToAddress } from '@quittance/tron/address';
import { HDKey } from '@scure/bip32';
import { expect, test } from 'vitest';
import { decodeId, encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import type { Network } from '../../src/core/domain/network.ts';
import { listOperatorActions } from '../../src/core/store/access/audit-log.ts';
import { insertAddresses } from '../../src/core/store/ledger/addresses.ts';
import { insertProject } from '../../src/core/store/ledger/projects.ts';
import { longTest } from '../support/some-cases.ts';
import { type CliOutput, newDirectory, openLedger, runCli } from './run-cli.ts';

// Each test starts many commands, one after the other.
const XPUB =
  'xpub6D1AabNHCupeiLM65ZR9UStMhJ1vCpyV4XbZdyhMZBiJXALQtmn9p42VTQckoHVn8WNqS7dqnJokZHAHcHGoaQgmv8D45oNUKx6DZMNZBCd';
const [FIRST, SECOND, THIRD] = [
  'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH',
  'TSeJkUh4Qv67VNFwY8LaAxERygNdy6NQZK',
  'TYJPRrdB5APNeRs4R7fYZSwW3TcrTKw2gx',
];

const ledger = await openLedger();
const { db } = ledger;

function cli(args: string[], env: NodeJS.ProcessEnv = {}): Promise<CliOutput> {
  return runCli(args, { env: { ...ledger.env, ...env } });
}

const newProject = async (network?: Network) => (await ledger.newProject(network)).projectId;

function newAddress(): string {
  return accountToAddress(randomBytes(20).toString('hex') as AccountHex);
}

test('a CSV file is added by its column "address", in its order', async () => {
  const id = await newProject();
  const [a, b] = [newAddress(), newAddress()];
  const file = join(newDirectory(), 'wallet.csv');
  writeFileSync(file, `\uFEFFLabel;Address\r\n"till; 1";${a}\r\ntill 2;"${b}"\r\n`);
  const { json } = await cli(['address', 'add', '--project', id, '--file', file, '--policy', 'exact', '--json']);
  expect(json).toMatchObject({ policy: 'exact', added: [a, b] });
  const list = await cli(['address', 'list', '--project', id, '--json']);
  expect(list.json).toMatchObject({ policy: 'tail', activeAddresses: { tail: 0, exact: 2 } });
  expect(list.json.data).toMatchObject([
    { address: a, policy: 'exact', status: 'active', derivationIndex: null },
    { address: b, policy: 'exact', status: 'active', derivationIndex: null },
  ]);
});

test('a spreadsheet that was saved as UTF-16 is read as well', async () => {
  const id = await newProject();
  const address = newAddress();
  const file = join(newDirectory(), 'wallet.txt');
  writeFileSync(file, Buffer.from(`\uFEFFaddress\tlabel\r\n${address}\tx\r\n`, 'utf16le'));
  const { json } = await cli(['address', 'add', '--project', id, '--file', file, '--json']);
  expect(json.added).toEqual([address]);
});

test('secrets in a file are refused with their place, and never repeated', async () => {
  const id = await newProject();
  const directory = newDirectory();
  const files: [content: string, kind: string][] = [
    [`address,key\n${newAddress()},${'4f'.repeat(32)}\n`, 'line 2, column 2 of'],
    ['legal\nwinner\nthank\nyear\nwave\nsausage\nworth\nuseful\nlegal\nwinner\nthank\nyellow\n', 'a seed phrase'],
    ['{\n"version": 3,\n"crypto": {"ciphertext": "4f4f4f"}\n}\n', 'a wallet file'],
  ];
  await Promise.all(
    files.map(async ([content, expected], index) => {
      const file = join(directory, `${index}.txt`);
      writeFileSync(file, content);
      const { code, stdout, stderr } = await cli(['address', 'add', '--project', id, '--file', file]);
      expect(code).toBe(2);
      expect(stderr).toContain(expected);
      expect(stderr).toContain('The secret is now in that input');
      expect(stdout + stderr).not.toMatch(/4f4f|sausage/);
    }),
  );
  expect((await cli(['address', 'list', '--project', id, '--json'])).json.data).toEqual([]);
});

test.each([
  ['without a heading', `TUEZSd…hGWYdH,${SECOND}\n`, 'line 1 of'],
  ['with a row that lacks a cell', `label,address,payer\nx,${FIRST},${SECOND}\n${FIRST},${THIRD}\n`, 'line 3 of'],
])('a file of several columns %s is refused, so that no other column is added', async (_what, content, place) => {
  const id = await newProject();
  const file = join(newDirectory(), 'several.csv');
  writeFileSync(file, content);
  const { code, stderr } = await cli(['address', 'add', '--project', id, '--file', file]);
  expect(code).toBe(2);
  expect(stderr).toContain(place);
  expect((await cli(['address', 'list', '--project', id, '--json'])).json.data).toEqual([]);
});

test('an id without its command is not repeated, and the message names the commands for ids', async () => {
  for (const group of ['transfers', 'project']) {
    const { code, stderr } = await cli([group, '4f'.repeat(32)]);
    expect(code).toBe(2);
    expect(stderr).toContain('If it is a transaction id, put a command before it: "quittance explain <id>"');
    expect(stderr).not.toContain('4f4f');
  }
});

test('no option repeats or keeps a secret, and a note may name a transaction', async () => {
  const id = await newProject();
  const [key, words] = ['4f'.repeat(32), 'legal winner thank year wave sausage worth useful legal winner thank yellow'];
  const address = newAddress();
  await cli(['address', 'add', '--project', id, address]);
  const retire = ['address', 'retire', address, '--project', id];
  const refused = await Promise.all(
    [
      ['address', 'add', newAddress(), '--project', id, '--by', key],
      ['address', 'add', newAddress(), '--project', key],
      ['address', 'add', '--project', id, '--file', key],
      ['address', 'add', '--project', id, '--file', words],
      ['address', 'add', newAddress(), '--project', id, '--policy', words],
      ['address', `xprv9${'4f'.repeat(50)}`],
      [...retire, '--note', words],
      [...retire, '--note', key],
      [...retire, '--note', `TRON_PRIVATE_KEY=${key}`],
      ['project', 'create', '--name', key, '--network', 'nile'],
      ['project', 'update', id, '--name', words],
      ['key', 'create', '--project', id, '--name', words],
      ['transfers', 'resolve', key, '--as', 'refunded', '--note', words, '--json'],
    ].map((args) => cli(args)),
  );
  for (const { code, stdout, stderr } of refused) {
    expect(code).toBe(2);
    expect(stdout + stderr).not.toMatch(/4f4f|sausage/);
  }
  expect(await cli([...retire, '--note', `emptied in tx ${key}`])).toMatchObject({ code: 0 });
  const kept = JSON.stringify(await listOperatorActions(db, address));
  expect(kept).toContain(`emptied in tx ${key}`);
  expect(kept).not.toContain('sausage');
});

test('more than 10,000 at once are refused with the way to go on, and so is what is no text', async () => {
  const directory = newDirectory();
  const [many, sheet] = [join(directory, 'many.txt'), join(directory, 'sheet.xlsx')];
  writeFileSync(many, `${newAddress()}\n`.repeat(10_001));
  writeFileSync(sheet, Buffer.from([0x50, 0x4b, 3, 4, 0, 0]));
  expect(await cli(['address', 'add', '--file', many])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('split'),
  });
  expect(await cli(['address', 'add', '--file', sheet])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('CSV'),
  });
});

test('nodes are asked which addresses were never activated; without an answer they are added all the same', async () => {
  const devnet = await startDevnet({ dataDir: null, blockMs: 0, producers: 3 });
  try {
    const env = { QUITTANCE_DEVNET_NODES: devnet.url, QUITTANCE_DEVNET_USDT: devnet.usdtContract };
    const id = await newProject('devnet');
    const fresh = newAddress();
    const known = devnet.payer.address;
    const checked = await cli(['address', 'add', '--project', id, fresh, known, '--json'], env);
    expect(checked).toMatchObject({ code: 0 });
    expect(checked.json.activation).toEqual({
      checked: 2,
      neverActivated: [fresh],
      contracts: [],
      notCheckedBecause: null,
    });
    const people = await cli(['address', 'add', '--project', id, newAddress()], env);
    expect(people.stderr).toMatch(/never activated: T\w+\n.*about 1 TRX/);
    const unchecked = await cli(['address', 'add', '--project', id, newAddress(), '--no-check', '--json'], env);
    expect(unchecked.json.activation).toBeNull();
    devnet.setFault({ kind: 'unavailable-503' });
    const blind = await cli(['address', 'add', '--project', id, newAddress(), '--json'], env);
    expect(blind).toMatchObject({
      code: 0,
      json: { activation: { checked: 0, notCheckedBecause: expect.any(String) } },
    });
  } finally {
    await devnet.stop();
  }
});

test('addresses are derived once #1 is confirmed, and the next call needs neither key nor confirmation', async () => {
  const id = await newProject('mainnet');
  const derive = (...args: string[]) => cli(['address', 'derive', '--project', id, ...args, '--json']);
  const unasked = await derive('--xpub', XPUB, '--count', '2');
  expect(unasked).toMatchObject({ code: 2, json: { error: { message: expect.stringContaining('--first') } } });
  const wrong = await derive('--xpub', XPUB, '--count', '2', '--first', SECOND ?? '');
  expect(wrong).toMatchObject({ code: 2, json: { error: { message: expect.stringContaining(`#2 ${SECOND}`) } } });
  const first = await derive('--xpub', XPUB, '--count', '2', '--first', FIRST ?? '', '--by', 'Ann');
  expect(first.json).toMatchObject({
    added: [
      { address: FIRST, derivationIndex: 0 },
      { address: SECOND, derivationIndex: 1 },
    ],
    skipped: [],
  });
  expect((await derive('--count', '1')).json.added).toEqual([{ address: THIRD, derivationIndex: 2 }]);
  const actions = await listOperatorActions(db, FIRST ?? '');
  expect(actions).toMatchObject([{ action: 'address.derived', actedBy: 'Ann', projectId: decodeId('prj', id) }]);
  const other = await newProject('mainnet');
  const elsewhere = await cli(['address', 'derive', '--project', other, '--xpub', XPUB, '--count', '1', '--json']);
  expect(elsewhere).toMatchObject({ code: 4, json: { error: { code: 'CONFLICT' } } });
});

longTest('deriving passes over any number of addresses that were imported before, and says so in short', async () => {
  const projectId = uuidV7(Date.now(), randomBytes(10));
  const project = { id: projectId, name: 'Imported', network: 'nile', maxSurchargeMicro: 10_000n } as const;
  await insertProject(db, { ...project, invoiceLifetimeMs: 1_800_000 });
  const imported = deriveAddresses(XPUB as AccountXpub, 0, 1100).map((each) => {
    return { ...each, id: uuidV7(Date.now(), randomBytes(10)), index: null };
  });
  await insertAddresses(db, { projectId, policy: null, accountKeyId: null, entries: imported });
  const args = ['address', 'derive', '--project', encodeId('prj', projectId), '--count', '2'];
  const first = await cli([...args, '--xpub', XPUB, '--first', FIRST ?? '']);
  expect(first.code).toBe(0);
  expect(first.stdout).toMatch(/… and 1090 more were skipped, up to #1100\nadded #1101 T\w+\nadded #1102 T/);
  const { json } = await cli([...args, '--json']);
  expect(json).toMatchObject({ added: [{ derivationIndex: 1102 }, { derivationIndex: 1103 }], skipped: [] });
});

test('how many addresses a key may yield by itself is said when it is added, shown, changed alone, and on record', async () => {
  const id = await newProject();
  const xpub = HDKey.fromMasterSeed(randomBytes(32)).derive("m/44'/195'/0'").publicExtendedKey as AccountXpub;
  const [first] = deriveAddresses(xpub, 0, 1);
  const derive = (...args: string[]) => cli(['address', 'derive', '--project', id, ...args]);
  const isNew = ['--xpub', xpub, '--first', first?.address ?? ''];
  const [alone, wrong] = [await derive(...isNew, '--auto-limit', '5'), await derive('--auto-limit', '10001')];
  expect(alone).toMatchObject({ code: 2, stderr: expect.stringContaining('also set --count') });
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('--auto-limit is "10001"') });
  const added = await derive(...isNew, '--count', '1');
  expect(added.stderr).toContain('Quittance adds up to 100 more automatically');
  const show = () => cli(['project', 'show', id]);
  expect((await show()).stdout).toMatch(/^derived automatically +0 of at most 100$/m);
  const changed = await derive('--auto-limit', '20', '--by', 'Ann', '--json');
  expect(changed.json).toMatchObject({ autoDerived: 0, autoDeriveLimit: 20 });
  expect((await show()).stdout).toMatch(/^derived automatically +0 of at most 20$/m);
  expect(await listOperatorActions(db, id)).toMatchObject([
    { action: 'project.changed', actedBy: 'Ann', detail: { autoDeriveLimit: { from: 100, to: 20 } } },
  ]);
});

test('an account key that is none, or can spend, is refused and never repeated', async () => {
  const id = await newProject();
  const derive = (xpub: string) => cli(['address', 'derive', '--project', id, '--xpub', xpub, '--count', '1']);
  const xprv = `xprv9${'s'.repeat(106)}`;
  const [secret, words, none] = await Promise.all([
    derive(xprv),
    derive('legal winner thank year wave sausage worth useful legal winner thank yellow'),
    cli(['address', 'derive', '--project', id, '--count', '1']),
  ]);
  expect(secret).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--xpub: this looks like an extended private'),
  });
  expect(secret.stderr).not.toContain('ssss');
  expect(words).toMatchObject({ code: 2, stderr: expect.stringContaining('a seed phrase') });
  expect(words.stderr).not.toContain('sausage');
  expect(none).toMatchObject({ code: 2, stderr: expect.stringContaining('no account key yet') });
});

test('retiring may be repeated, is on record, and warns where no address is left', async () => {
  const id = await newProject();
  const [a, b] = [newAddress(), newAddress()];
  await cli(['address', 'add', '--project', id, a, b]);
  const retire = (...args: string[]) => cli(['address', 'retire', '--project', id, ...args]);
  const one = await retire(a, '--by', 'Ann', '--note', 'old wallet');
  expect(one).toMatchObject({ code: 0, stdout: `retired ${a}\n` });
  expect(one.stderr).not.toContain('warning');
  const both = await retire(a, b);
  expect(both.stdout).toBe(`retired ${b}\n${a} was already retired\n`);
  expect(both.stderr).toMatch(/warning: no active address with the policy tail/);
  const active = await cli(['address', 'activate', '--project', id, a, '--json']);
  expect(active.json).toMatchObject({ status: 'active', changed: [a], unchanged: [], activeAddresses: { tail: 1 } });
  expect((await listOperatorActions(db, a)).map(({ action, actedBy }) => [action, actedBy])).toEqual([
    ['address.added', expect.any(String)],
    ['address.retired', 'Ann'],
    ['address.activated', expect.any(String)],
  ]);
  const unknown = await retire(a, newAddress());
  expect(unknown).toMatchObject({ code: 3, stderr: expect.stringContaining('is not in this project') });
  const again = await cli(['address', 'add', '--project', id, b]);
  expect(again).toMatchObject({ code: 4, stderr: expect.stringContaining(`quittance address activate ${b}`) });
});

test('a change of policy says whether addresses of it are there, and is on record', async () => {
  const id = await newProject();
  await cli(['address', 'add', '--project', id, newAddress()]);
  const update = (...args: string[]) => cli(['project', 'update', id, ...args]);
  const changed = await update('--policy', 'exact', '--by', 'Ann');
  expect(changed.stderr).toContain(`quittance address add --project ${id} --policy exact`);
  const wanted = ['--policy', 'tail', '--lifetime', '1h', '--max-unpaid', 'none', '--max-unpaid-per-minute', '240'];
  const json = (await update(...wanted, '--json')).json;
  expect(json).toMatchObject({
    policy: 'tail',
    activeAddresses: { tail: 1, exact: 0 },
    changed: {
      policy: { from: 'exact', to: 'tail' },
      lifetimeMs: { from: 1_800_000, to: 3_600_000 },
      maxUnpaid: { from: 600, to: null },
      maxUnpaidPerMinute: { from: 120, to: 240 },
    },
  });
  expect((await update('--policy', 'tail')).stderr).toContain('nothing to change');
  expect(await listOperatorActions(db, id)).toMatchObject([
    { action: 'project.changed', actedBy: 'Ann', detail: { policy: { from: 'tail', to: 'exact' } } },
    { action: 'project.changed', detail: json.changed },
  ]);
  const [wrong, none, both] = await Promise.all([
    update('--name', '', '--max-surcharge', '2', '--lifetime', '1m', '--json'),
    update(),
    update('--policy', 'both'),
  ]);
  const subjects = wrong.json.error.errors.map(({ subject }: { subject: string }) => subject);
  expect(subjects).toEqual(['--name', '--max-surcharge', '--lifetime']);
  expect(none).toMatchObject({ code: 2, stderr: expect.stringContaining('no change was given') });
  expect(both).toMatchObject({ code: 2, stderr: expect.stringContaining('tail, tail-4, tail-3, exact') });
});

test('with the policy exact, the project says that the max surcharge has no effect', async () => {
  const args = ['project', 'create', '--name', 'Exact', '--network', 'nile', '--policy', 'exact'];
  const { code, stdout } = await cli(args);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^policy +exact$/m);
  expect(stdout).toMatch(/^max surcharge +none/m);
});

test('each tail has a limit of its own, which a change of the policy brings along', async () => {
  const id = await newProject();
  const update = (...args: string[]) => cli(['project', 'update', id, ...args, '--json']);
  const limitAfter = async (...args: string[]) => (await update(...args)).json.maxSurcharge;
  expect(await limitAfter('--policy', 'tail-3')).toBe('0.100000');
  expect(await limitAfter('--policy', 'tail')).toBe('0.010000');
  // A limit that the operator chose stays if it leaves room for code words.
  expect(await limitAfter('--max-surcharge', '0.05')).toBe('0.050000');
  expect(await limitAfter('--policy', 'tail-4')).toBe('0.050000');
  expect(await limitAfter('--policy', 'tail-3')).toBe('0.100000');
  for (const narrow of [
    ['--max-surcharge', '0.05'],
    ['--policy', 'tail-4', '--max-surcharge', '0.005'],
  ]) {
    const { code, json } = await update(...narrow);
    expect([code, json.error.errors[0]?.message]).toEqual([
      2,
      expect.stringMatching(/with the policy tail-[34] use 0\.\d+ to 1/),
    ]);
  }
  const args = ['project', 'create', '--name', 'Coarse', '--network', 'nile', '--policy', 'tail-4', '--json'];
  expect((await cli(args)).json).toMatchObject({ policy: 'tail-4', maxSurcharge: '0.100000' });
});
