import { createHash, randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type AccountHex, accountToAddress, parseAddress } from '@quittance/tron/address';
import { describe, expect, test } from 'vitest';
import { readApiKey } from '../../src/core/domain/api-key.ts';
import { decodeId, encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import type { Network } from '../../src/core/domain/network.ts';
import { insertAddress } from '../../src/core/store/ledger/addresses.ts';
import { type CliOutput, newDirectory, openLedger, runCli } from './run-cli.ts';

const ledger = await openLedger();
const { database, db, env, query } = ledger;

function cli(...args: string[]): Promise<CliOutput> {
  return runCli(args, { env });
}

let addressCount = 0;
function newAddress(): string {
  addressCount += 1;
  return accountToAddress(addressCount.toString(16).padStart(40, 'a') as AccountHex);
}

const newProject = async (network?: Network) => (await ledger.newProject(network)).projectId;

async function addAddress(projectId: string, address: string): Promise<void> {
  const parsed = parseAddress(address);
  const project = decodeId('prj', projectId);
  if (parsed.kind !== 'ok' || project === null) throw new Error(`cannot add ${address} to ${projectId}`);
  await insertAddress(db, { ...parsed, id: uuidV7(Date.now(), randomBytes(10)), projectId: project });
}

test('with no project yet, commands say how to make one', async () => {
  expect(await cli('project', 'list')).toMatchObject({
    code: 0,
    stdout: '',
    stderr: expect.stringContaining('project create'),
  });
  expect((await cli('project', 'list', '--json')).json).toEqual({ data: [] });
  expect(await cli('key', 'create')).toMatchObject({
    code: 3,
    stdout: '',
    stderr: expect.stringContaining('project create'),
  });
});

let project: string;
let [live, other] = ['', ''];

test('project create prints the project; alone, it need not be named', async () => {
  const args = ['--name', ' Döner & Söhne ', '--network', 'nile', '--max-surcharge', '0.05', '--lifetime', '2h'];
  const limits = ['--max-unpaid', '50', '--max-unpaid-per-minute', 'none'];
  const { code, json } = await cli('project', 'create', ...args, ...limits, '--json');
  expect(code).toBe(0);
  const { warning, ...shown } = json;
  expect(warning).toMatch(/^no nile watcher has ever run/);
  expect(shown).toEqual({
    projectId: expect.stringMatching(/^prj_[0-9a-z]{26}$/),
    name: 'Döner & Söhne',
    archivedAt: null,
    network: 'nile',
    policy: 'tail',
    maxSurcharge: '0.050000',
    lifetimeMs: 7_200_000,
    maxUnpaid: 50,
    maxUnpaidPerMinute: null,
    supportContact: null,
    returnUrl: null,
    embedOrigins: null,
    accent: null,
    logoId: null,
    createdAt: expect.stringMatching(/Z$/),
  });
  project = json.projectId;
  expect((await cli('project', 'show', '--json')).json).toEqual({
    ...shown,
    activeAddresses: { tail: 0, 'tail-4': 0, 'tail-3': 0, exact: 0 },
    retiredAddresses: 0,
    autoDerived: 0,
    autoDeriveLimit: 0,
    activeKeys: 0,
    webhookEndpoints: 0,
  });
  const { stdout } = await cli('project', 'show', project);
  expect(stdout).toMatch(new RegExp(`^project +${project}$`, 'm'));
  expect(stdout).toMatch(/^invoice lifetime +2h$/m);
  expect(stdout).toMatch(/^max unpaid +50 in 30 minutes$/m);
  expect(stdout).toMatch(/^max unpaid per minute +no limit$/m);
});

test('with several projects, a command lists them and asks for one', async () => {
  [live, other] = await Promise.all([newProject('mainnet'), newProject()]);
  const { code, json } = await cli('key', 'list', '--json');
  expect(code).toBe(2);
  expect(json.error.code).toBe('INVALID_ARGUMENT');
  expect(json.error.errors.map(({ subject }: { subject: string }) => subject).sort()).toEqual(
    [project, live, other].sort(),
  );
  const list = await cli('project', 'list');
  expect(list.stdout.split('\n')[0]).toMatch(/^PROJECT +NETWORK +POLICY +ADDRESSES +CREATED +NAME$/);
  expect(list.stdout).toContain('Döner & Söhne');
});

describe('after that', () => {
  test('project create reports every wrong option at once', async () => {
    const args = ['--name', 'a\nb', '--network', 'main', '--max-surcharge', '2', '--lifetime', '4m'];
    const limits = ['--max-unpaid', '0', '--max-unpaid-per-minute', 'all'];
    const { code, stderr } = await cli('project', 'create', ...args, ...limits);
    expect(code).toBe(2);
    const wrong = ['--name', '--network is "main"', '--max-surcharge is "2"', '--lifetime is "4m"'];
    for (const option of [...wrong, '--max-unpaid is "0"', '--max-unpaid-per-minute is "all"']) {
      expect(stderr).toContain(option);
    }
  });

  test('a malformed project id is a wrong argument, an unknown one is not found', async () => {
    const unknown = encodeId('prj', '01890000-0000-7000-8000-000000000000');
    expect(await cli('project', 'show', 'prj_x')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('"prj_x"'),
    });
    expect((await cli('key', 'create', '--project', unknown, '--json')).json.error.code).toBe('NOT_FOUND');
    expect(await cli('project', 'show', unknown)).toMatchObject({ code: 3, stderr: expect.stringContaining(unknown) });
  });

  test('key create shows the key once and stores its SHA-256', async () => {
    const args = [
      '--name',
      'till',
      '--expires',
      '2099-01-31',
      '--allow-ip',
      '10.0.0.0/8,::1',
      '--allow-ip',
      '192.0.2.7',
      '--scopes',
      'webhooks,read',
    ];
    const { code, json } = await cli('key', 'create', '--project', live, ...args, '--json');
    expect(code).toBe(0);
    expect(json).toMatchObject({
      projectId: live,
      network: 'mainnet',
      name: 'till',
      expiresAt: '2099-01-31T00:00:00.000Z',
      allowedIps: ['10.0.0.0/8', '::1/128', '192.0.2.7/32'],
      scopes: ['read', 'webhooks'],
    });
    expect(json.apiKey).toMatch(/^qt_live_/);
    const uuid = decodeId('key', json.keyId);
    expect(readApiKey(json.apiKey)).toEqual({ keyUuid: uuid, mode: 'live' });
    const [row] = await query('select secret_sha256, scopes from api_keys where id = $1', [uuid]);
    expect(row?.['secret_sha256']).toEqual(createHash('sha256').update(json.apiKey).digest());
    expect(row?.['scopes']).toEqual(['read', 'webhooks']);
    const list = await cli('key', 'list', '--project', live, '--json');
    expect(list.json.data).toMatchObject([{ keyId: json.keyId, name: 'till', status: 'active', lastUsedAt: null }]);
    expect(list.stdout).not.toContain('qt_live_');
  });

  test('key create for people prints the key as a value to copy, and the warning elsewhere', async () => {
    const { stdout, stderr } = await cli('key', 'create', '--project', other, '--expires', '90d');
    expect(stdout).toMatch(/^secret key +qt_test_[0-9A-Za-z]+$/m);
    expect(stderr).toContain('not shown again');
    expect(stderr).not.toContain('qt_test_');
  });

  test('key create reports every wrong option at once', async () => {
    const args = [
      '--name',
      '',
      '--expires',
      '2020-01-01',
      '--allow-ip',
      '10.0.0.0/40',
      '--allow-ip',
      '0.0.0.0/0',
      '--scopes',
      'read,all',
    ];
    const { code, json } = await cli('key', 'create', '--project', project, ...args, '--json');
    expect(code).toBe(2);
    const subjects = json.error.errors.map(({ subject }: { subject: string }) => subject);
    expect(subjects).toEqual(['--name', '--expires', '--allow-ip', '--allow-ip', '--scopes']);
  });

  test('key revoke is final and may be repeated; an unknown key is not found', async () => {
    const { json: key } = await cli('key', 'create', '--project', project, '--json');
    expect(await cli('key', 'revoke', key.keyId)).toMatchObject({ code: 0, stdout: `revoked ${key.keyId}\n` });
    const [again, list, unknown, mistaken] = await Promise.all([
      cli('key', 'revoke', key.keyId),
      cli('key', 'list', '--project', project, '--json'),
      cli('key', 'revoke', encodeId('key', '01890000-0000-7000-8000-000000000000')),
      cli('key', 'revoke', key.apiKey),
    ]);
    expect(again.code).toBe(0);
    expect(list.json.data).toMatchObject([{ keyId: key.keyId, status: 'revoked', revokedAt: expect.any(String) }]);
    expect(unknown.code).toBe(3);
    expect(mistaken).toMatchObject({ code: 2, stderr: expect.stringContaining(key.keyId) });
    expect(mistaken.stderr).not.toContain(key.apiKey);
  });

  test('address add takes arguments, standard input and a file, in this order', async () => {
    const id = await newProject();
    const [a, b, c] = [newAddress(), newAddress(), newAddress()];
    const file = join(newDirectory(), 'addresses.txt');
    writeFileSync(file, `\uFEFF# cold wallet\r\n\r\n  ${c}  # the third\r\n`);
    const added = await runCli(['address', 'add', '--project', id, a, '-', '--file', file, '--json'], {
      env: { DATABASE_URL: database.connectionString },
      stdin: `${b}\n`,
    });
    expect(added.json).toEqual({
      projectId: id,
      network: 'nile',
      policy: 'tail',
      added: [a, b, c],
      activation: {
        checked: 0,
        neverActivated: [],
        contracts: [],
        notCheckedBecause: 'no nile node is configured here',
      },
    });
    const { json } = await cli('address', 'list', '--project', id, '--json');
    expect(json.data).toMatchObject(
      [a, b, c].map((address, index) => ({ address, position: index + 1, retiredAt: null })),
    );
  });

  test('address add reports every problem at once and adds nothing', async () => {
    const id = await newProject();
    const [good, own, foreign] = [newAddress(), newAddress(), newAddress()];
    await Promise.all([
      cli('address', 'add', '--project', id, own),
      cli('address', 'add', '--project', other, foreign),
    ]);
    const usdt = 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf';
    const burn = 'T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb';
    const ether = '0xdAC17F958D2ee523a2206206994597C13D831ec7';
    const all = [good, own, foreign, usdt, burn, ether, good, `${good.slice(0, -1)}1`];
    const { code, json } = await cli('address', 'add', '--project', id, ...all, '--json');
    expect(code).toBe(2);
    const text = json.error.errors.map(({ message }: { message: string }) => message).join('\n');
    expect(json.error.errors).toHaveLength(7);
    expect(text).toContain(`${own} is already in this project`);
    expect(text).toContain(`${foreign} belongs to another project`);
    expect(text).toContain(`argument 4 ("${usdt}"): this is the USDT contract itself`);
    expect(text).toContain('the burn address');
    expect(text).toContain('Ethereum-style');
    expect(text).toContain('argument 7');
    expect(text).toContain('is a duplicate of argument 1');
    expect(text).toContain('checksum');
    expect((await cli('address', 'list', '--project', id, '--json')).json.data).toMatchObject([{ address: own }]);
  });

  test('an address that is taken is a conflict; the same address on another network is not', async () => {
    const address = newAddress();
    const id = await newProject();
    await addAddress(id, address);
    expect(await cli('address', 'add', '--project', id, address)).toMatchObject({ code: 4 });
    expect((await cli('address', 'add', '--project', live, address)).code).toBe(0);
  });

  test('a secret given for an address is refused with advice and never repeated', async () => {
    const words = 'legal winner thank year wave sausage worth useful legal winner thank yellow';
    const secrets: [kind: string, args: string[]][] = [
      ['a private key', [`${'4f'.repeat(32)}`]],
      ['a seed phrase', words.split(' ')],
      ['34 characters, but this text has 65', [`${'4f'.repeat(32)}4`]],
    ];
    await Promise.all(
      secrets.map(async ([kind, args]) => {
        const { code, stdout, stderr } = await cli('address', 'add', '--project', project, ...args);
        expect(code).toBe(2);
        expect(stderr).toContain(kind);
        expect(stdout + stderr).not.toMatch(/4f4f|sausage/);
      }),
    );
  });

  test('webhook add takes a secret from standard input; neither it nor the list shows it', async () => {
    const url = 'https://shop.example.com/hook?token=1';
    const env = { DATABASE_URL: database.connectionString, QUITTANCE_MASTER_KEY: randomBytes(32).toString('base64') };
    const secret = `whsec_${randomBytes(32).toString('base64')}`;
    const args = ['webhook', 'add', '--project', live, '--url', url, '--secret', '-', '--json'];
    const { code, json } = await runCli(args, { env, stdin: `${secret}\n` });
    expect({ code, json }).toMatchObject({
      code: 0,
      json: { network: 'mainnet', url, secret: null, eventTypes: null },
    });
    const list = await cli('webhook', 'list', '--project', live, '--json');
    expect(list.json.data).toMatchObject([{ endpointId: json.endpointId, url, status: 'active', disabledAt: null }]);
    expect(list.stdout).not.toContain('whsec_');
  });
});
