import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { accountToAddress } from '@quittance/tron/address';
import { accountFromPublicKey } from '@quittance/tron/public-key';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type CliOutput, newDirectory, runCli } from '../cli/run-cli.ts';
import {
  call,
  createInvoice,
  createTestProject,
  eventually,
  startTestService,
  type TestProject,
  type TestService,
} from '../support/service.ts';
import { expectProblem, get, order, post } from './ask.ts';
import { runSql } from './sql.ts';

/** Published test vectors without anyone's money. Each call of the command starts a process. */
const SEED = 'legal winner thank year wave sausage worth useful legal winner thank yellow';
const XPRV =
  'xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKmPGJxWUtg6LnF5kejMRNNU3TGtRBeJgk33yuGBxrMPHi';
const HEX = 'e9873d79c6d87dc0fb6a5778633389f4453213303da61f20bd67fc233aa33262';
const WIF = '5Kb8kLf9zgWQnogidDA76MzPL6TsZZY36hWXMssSzNydYXYB9KF';
const CHINESE = '的 的 的 的 的 的 的 的 的 的 的 在';
/** Parts of the secrets that must not appear anywhere; even a part would be too much. */
const TELLTALES = [XPRV.slice(0, 24), HEX.slice(0, 16), WIF.slice(0, 16), 'winner thank', '的 的'];

const XPUB =
  'xpub6D1AabNHCupeiLM65ZR9UStMhJ1vCpyV4XbZdyhMZBiJXALQtmn9p42VTQckoHVn8WNqS7dqnJokZHAHcHGoaQgmv8D45oNUKx6DZMNZBCd';
const DERIVED = [
  'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH',
  'TSeJkUh4Qv67VNFwY8LaAxERygNdy6NQZK',
  'TYJPRrdB5APNeRs4R7fYZSwW3TcrTKw2gx',
];
const MAINNET_USDT = 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

function cli(args: string[], stdin?: string): Promise<CliOutput> {
  const env = {
    DATABASE_URL: service.connectionString,
    QUITTANCE_DEVNET_NODES: service.devnet.url,
    QUITTANCE_DEVNET_USDT: service.devnet.usdtContract,
  };
  return runCli(args, stdin === undefined ? { env } : { env, stdin });
}

function newAddress(): string {
  return accountToAddress(accountFromPublicKey(secp256k1.getPublicKey(secp256k1.utils.randomSecretKey(), false)));
}

const add = (project: TestProject, ...args: string[]) =>
  cli(['address', 'add', '--project', project.projectId, ...args]);

async function addressesOf(project: TestProject): Promise<string[]> {
  const rows = await runSql(service, 'select address from addresses where project_id = $1 order by position', [
    project.id,
  ]);
  return rows.map((row) => String(row['address']));
}

function expectNotRepeated({ stdout, stderr }: CliOutput, what: string): void {
  for (const telltale of TELLTALES) {
    expect((stdout + stderr).toLowerCase().includes(telltale.toLowerCase()), `${what} repeats ${telltale}`).toBe(false);
  }
}

describe('private keys, seeds and xprv are recognised and refused with an explanation', () => {
  const EXPLAINED = /looks like (a|an) (private key|seed phrase|extended private key|wallet file)[^\n]*never/;

  test('as arguments, each with its place', async () => {
    const project = await createTestProject(service.db, { addressCount: 0 });
    const reply = await add(project, newAddress(), HEX, `0x${HEX.toUpperCase()}`, XPRV, WIF, SEED);
    expect(reply.code).toBe(2);
    const lines = reply.stderr.split('\n').filter((line) => /^\s*argument \d/.test(line));
    expect(lines.map((line) => /argument (\d)/.exec(line)?.[1])).toEqual(['2', '3', '4', '5', '6']);
    for (const line of lines) expect(line).toMatch(EXPLAINED);
    expectNotRepeated(reply, 'address add');
    expect(await addressesOf(project)).toEqual([]);
  });

  test.each([
    ['a seed phrase', SEED],
    ['a seed phrase with a typing mistake', SEED.replace('sausage', 'sasage')],
    ['a seed phrase, one word a line', SEED.replaceAll(' ', '\n')],
    ['a seed phrase in Chinese', CHINESE],
    ['a seed phrase in a comment beside an address', `${newAddress()} # ${SEED}`],
    ['a private key in a comment', `${newAddress()} # ${HEX}`],
  ])('in a list: %s', async (_what, list) => {
    const project = await createTestProject(service.db, { addressCount: 0 });
    const reply = await cli(['address', 'add', '--project', project.projectId, '-'], `${list}\n`);
    expectNotRepeated(reply, 'address add');
    expect(await addressesOf(project)).toEqual([]);
    expect(reply.code, reply.stderr).toBe(2);
    expect(reply.stderr).toMatch(EXPLAINED);
  });

  test('instead of an xpub', async () => {
    const project = await createTestProject(service.db, { addressCount: 0 });
    const replies = await Promise.all(
      [XPRV, SEED, HEX].map((secret) =>
        cli(['address', 'derive', '--project', project.projectId, '--count', '1', '--xpub', secret]),
      ),
    );
    for (const reply of replies) {
      expect(reply.code).toBe(2);
      expect(reply.stderr).toMatch(EXPLAINED);
      expectNotRepeated(reply, 'address derive');
    }
    expect(await addressesOf(project)).toEqual([]);
  });

  test.each([
    ['as a command', () => ['address', XPRV]],
    ['as a file', (project: TestProject) => ['address', 'add', '--project', project.projectId, '--file', SEED]],
    [
      'as a policy',
      (project: TestProject) => ['address', 'add', '--project', project.projectId, '--policy', XPRV, 'T'],
    ],
    ['as a project', () => ['address', 'add', '--project', XPRV, 'T']],
    ['as what to explain', () => ['explain', SEED]],
    ['as a transfer', () => ['transfers', 'show', XPRV]],
    ['as what to retire', (project: TestProject) => ['address', 'retire', '--project', project.projectId, WIF]],
  ])('no command repeats one, wherever it was pasted: %s', async (what, args) => {
    const reply = await cli(args(service.project));
    expect(reply.code).not.toBe(0);
    expectNotRepeated(reply, what);
  });
});

test('checksum, form, duplicates, other projects and the USDT contract have clear messages, and nothing is added', async () => {
  const project = await createTestProject(service.db, { addressCount: 1 });
  const other = await createTestProject(service.db, { addressCount: 1 });
  const good = newAddress();
  const refused = async (list: string[]) => {
    const reply = await cli(['address', 'add', '--project', project.projectId, '--json', '-'], list.join('\n'));
    expect(reply.code).not.toBe(0);
    const reported = (line: number) =>
      JSON.stringify(
        reply.json.error.errors.find(({ subject }: Record<string, string>) => subject?.startsWith(`line ${line} `)) ??
          null,
      );
    return { reported, text: reply.stdout };
  };
  // Problems found in the list itself are reported at once, for every line.
  const { reported } = await refused([
    `${good.slice(0, -1)}${good.endsWith('a') ? 'b' : 'a'}`,
    good,
    good,
    service.devnet.usdtContract,
    MAINNET_USDT,
    '0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf',
    'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4',
  ]);
  expect(reported(1)).toMatch(/checksum/i);
  expect(reported(2)).toBe('null');
  expect(reported(3)).toMatch(/line 2/);
  expect(reported(4)).toMatch(/USDT contract/);
  expect(reported(5)).toMatch(/USDT contract/);
  expect(reported(6)).toMatch(/Ethereum/i);
  expect(reported(7)).toMatch(/Bitcoin/i);
  const [own = '', foreign = ''] = [...project.addresses, ...other.addresses];
  const { text } = await refused([good, own, foreign]);
  for (const [address, reason] of [
    [own, /already|in this project/i],
    [foreign, /another project/i],
  ] as const) {
    const messages = JSON.parse(text).error.errors.filter((error: object) => JSON.stringify(error).includes(address));
    expect(messages).toHaveLength(1);
    expect(JSON.stringify(messages)).toMatch(reason);
  }
  expect(await addressesOf(project)).toEqual(project.addresses);
});

test('an address that was never activated is added with a note that names it', async () => {
  const project = await createTestProject(service.db, { addressCount: 0 });
  const [cold, warm] = [newAddress(), newAddress()];
  await service.payer.sendTrx({ to: warm, amountSun: 1_000_000n });
  service.devnet.mineUntilSolid();
  const reply = await add(project, cold, warm);
  expect(reply.code, reply.stderr).toBe(0);
  const note = (reply.stdout + reply.stderr)
    .split('\n')
    .filter((line) => /activated/.test(line))
    .join('\n');
  expect(note).toContain(cold);
  expect(note).not.toContain(warm);
  expect(await addressesOf(project)).toEqual([cold, warm]);
});

describe('derived from an account xpub, watch-only', () => {
  const derive = (project: TestProject, ...args: string[]) =>
    cli(['address', 'derive', '--project', project.projectId, ...args]);

  test("only after the operator confirmed address #1; m/44'/195'/0'/0/index", async () => {
    const project = await createTestProject(service.db, { addressCount: 0 });
    const [first = '', second = '', third = ''] = DERIVED;
    const [unconfirmed, wrong] = await Promise.all([
      derive(project, '--xpub', XPUB, '--count', '2'),
      derive(project, '--xpub', XPUB, '--count', '2', '--first', second),
    ]);
    for (const refused of [unconfirmed, wrong]) {
      expect(refused.code).not.toBe(0);
      expect(refused.stdout + refused.stderr, 'what is to be confirmed is not given away').not.toContain(first);
    }
    expect(await addressesOf(project)).toEqual([]);

    const confirmed = await derive(project, '--xpub', XPUB, '--count', '2', '--first', first);
    expect(confirmed.code, confirmed.stderr).toBe(0);
    expect(await addressesOf(project)).toEqual([first, second]);
    // Only once for each key: the next addresses continue where these end.
    expect((await derive(project, '--count', '1')).code).toBe(0);
    expect(await addressesOf(project)).toEqual([first, second, third]);

    const other = await createTestProject(service.db, { addressCount: 0 });
    const again = await derive(other, '--xpub', XPUB, '--count', '1', '--first', first);
    expect(again.code).toBe(4);
    expect(await addressesOf(other)).toEqual([]);
    const [{ rows } = { rows: 0 }] = await runSql(
      service,
      "select count(*)::int as rows from operator_actions where project_id = $1 and action = 'address.derived'",
      [project.id],
    );
    expect(rows).toBe(3);
  });

  test('no private key can come out of it: only the public key is stored', async () => {
    const rows = await runSql(service, 'select * from account_keys');
    for (const row of rows) expect(JSON.stringify(row)).not.toMatch(/prv/);
  });
});

describe('active or retired', () => {
  test('invoices take the fewest addresses; a retired one takes no new ones while the service runs, and who did it is kept', async () => {
    const project = await createTestProject(service.db, { addressCount: 3 });
    const allocated = async (amount: string) => {
      const { body } = await createInvoice(service, { apiKey: project.apiKey, body: { amount } });
      const read = await get(service, `/v1/invoices/${body.invoiceId}?expand=payment`, project);
      return read.body.payment.address as string;
    };
    const amounts = ['25', '25', '25', '7', '0.5', '19.99', '1000', '25.004', '25.009', '3', '3'];
    const used = new Set(await Promise.all(amounts.map(allocated)));
    expect([...used]).toHaveLength(1);
    const [retired = ''] = used;
    const note = 'moved to the new wallet';
    const args = ['address', 'retire', retired, '--project', project.projectId, '--by', 'ada', '--note', note];
    const reply = await cli([...args, '--json']);
    expect(reply.json).toMatchObject({ status: 'retired', changed: [retired], activeAddresses: { tail: 2, exact: 0 } });
    const after = new Set(await Promise.all(amounts.map(allocated)));
    expect([...after]).toHaveLength(1);
    expect(after.has(retired)).toBe(false);
    const [action] = await runSql(service, 'select * from operator_actions where subject = $1', [retired]);
    expect(action).toMatchObject({ action: 'address.retired', acted_by: 'ada', project_id: project.id });
    expect(JSON.stringify(action?.['detail'])).toContain(note);
    for (const text of ["update operator_actions set acted_by = 'eve'", 'delete from operator_actions']) {
      await expect(runSql(service, text)).rejects.toThrow();
    }
    // An address can never be removed.
    await expect(runSql(service, 'delete from addresses where address = $1', [retired])).rejects.toThrow();
  });
});

describe('capacity', () => {
  test('free code words per address for an amount, the rate of use, the days left, the metrics and the alarm below 20 %', async () => {
    const project = await createTestProject(service.db, { maxSurchargeMicro: 100n });
    const create = () => post(service, { project, body: order({ amount: '3' }) });
    // A range of 100 micro-USDT above a round amount contains nine code words.
    for (let i = 0; i < 7; i++) expect((await create()).status).toBe(201);
    const args = ['address', 'capacity', '--project', project.projectId, '--json'];
    const [before, list] = await Promise.all([cli([...args, '--amount', '3.00']), cli(args)]);
    expect(before.json).toMatchObject({
      ...{ amount: '3.000000', total: 9, free: 2, used7Days: 7, used30Days: 7, low: true },
      addresses: [{ address: project.addresses[0], total: 9, free: 2 }],
    });
    expect(before.json.freeShare).toBeCloseTo(2 / 9);
    expect(before.json.daysLeft).toBe(0);
    expect(list.json.amounts).toMatchObject([{ amount: '3.000000', total: 9, free: 2, low: true }]);
    await service.restart();
    const metric = async (name: string) => {
      const text = await (await fetch(`${service.metricsUrl}/metrics`)).text();
      return text.split('\n').find((line) => line.startsWith(`${name}{`) && line.includes(project.projectId));
    };
    const free = await eventually(
      () => metric('quittance_capacity_free_ratio'),
      (line) => line !== undefined,
    );
    expect(Number(free?.split(' ').at(-1))).toBeCloseTo(2 / 9);
    expect(Number((await metric('quittance_capacity_days_left'))?.split(' ').at(-1))).toBe(0);
    const alarmed = () => call(`${service.metricsUrl}/readyz`).then(({ body }) => JSON.stringify(body));
    await eventually(alarmed, (text) => text.includes('capacity-low'));
    for (let i = 0; i < 2; i++) expect((await create()).status).toBe(201);
    expectProblem(await create(), 409, 'AMOUNT_UNAVAILABLE');
    await eventually(
      () => metric('quittance_amount_unavailable_total'),
      (line) => Number(line?.split(' ').at(-1)) === 1,
    );
  });

  test('an amount of which a fifth is free, and enough for 14 days, is not low', async () => {
    const project = await createTestProject(service.db, { maxSurchargeMicro: 1000n });
    await post(service, { project, body: order({ amount: '3' }) });
    const { json } = await cli(['address', 'capacity', '--project', project.projectId, '--amount', '3', '--json']);
    expect(json).toMatchObject({ total: 90, free: 89, low: false });
    expect(json.daysLeft).toBeGreaterThanOrEqual(14);
  });
});

test('of two projects that are given one address at once, one gets it', async () => {
  const [a, b] = [
    await createTestProject(service.db, { addressCount: 0 }),
    await createTestProject(service.db, { addressCount: 0 }),
  ];
  const [shared, own, other] = [newAddress(), newAddress(), newAddress()];
  const replies = await Promise.all([add(a, own, shared, '--no-check'), add(b, other, shared, '--no-check')]);
  expect(replies.map(({ code }) => code).toSorted()).toEqual([0, 4]);
  const kept = [await addressesOf(a), await addressesOf(b)];
  // Either the whole list or nothing.
  expect(kept.toSorted((x, y) => x.length - y.length)[0]).toEqual([]);
  expect(kept.flat()).toContain(shared);
  expect(kept.flat()).toHaveLength(2);
});

test('a CSV file is imported by its column of addresses', async () => {
  const project = await createTestProject(service.db, { addressCount: 0 });
  const [a, b] = [newAddress(), newAddress()];
  const file = join(newDirectory(), 'wallet.csv');
  writeFileSync(file, `label,address\r\n"till, 1",${a}\r\ntill 2,"${b}"\r\n`);
  expect((await add(project, '--file', file, '--no-check')).code).toBe(0);
  expect(await addressesOf(project)).toEqual([a, b]);
});
