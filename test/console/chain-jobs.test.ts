import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { unlimitedNode } from '../../src/core/domain/node.ts';
import { findInvoicePayment } from '../../src/core/store/ledger/payments.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { listAudit, readAuditFilter } from '../../src/faces/operator/subjects/audit.ts';
import { startConsoleOver } from '../admin/console-service.ts';
import { countSeconds } from '../doctor/doctored.ts';
import { withClient } from '../support/postgres-template.ts';
import { eventually } from '../support/service.ts';
import { longTest } from '../support/some-cases.ts';
import { type ChainDesk, openChainDesk } from './chain-desk.ts';
import { openConsole, type Reply, tokenIn } from './console.ts';

let desk: ChainDesk;
/** 300 blocks without differences, and twelve of them. */
let range: { from: string; to: string };
let few: { from: string; to: string };

beforeAll(async () => {
  desk = await openChainDesk();
  desk.books.devnet.mine(300);
  const { from } = await desk.books.record();
  range = { from: String(from), to: String(from + 299) };
  few = { from: String(from), to: String(from + 11) };
});
afterAll(() => desk.stop());

let release: () => void;
beforeEach(() => {
  release = () => {};
  return () => release();
});

const textOf = ({ text }: Reply) => text.replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ');
const POINT = { 'x-actor': 'otto' };

longTest(
  'a comparison of hundreds of blocks goes on after the answer, shows how far it is by itself, and says what the command says',
  async () => {
    release = desk.hold(20);
    const path = await desk.start('verify', range);
    expect(path).toMatch(/^\/chain\/jobs\/job_[0-9a-z]{26}$/);
    const under = await eventually(
      () => desk.get(path),
      ({ text }) => textOf({ text } as Reply).includes('117 of 300 blocks'),
    );
    expect([under.status, under.headers.get('refresh')]).toEqual([200, '2']);
    expect(textOf(under)).toMatch(/blocks per second, about \d+ (s|min) left/);
    expect(textOf(under)).toContain('So far 0 differences');
    expect(textOf(under)).toContain('by Ana');
    const still = await desk.get(`${path}?still=1`);
    expect([still.headers.get('refresh'), still.text.includes('Automatic refresh is off')]).toEqual([null, true]);
    expect(textOf(await desk.get('/chain'))).toMatch(/Verify blocks [\d,]+ to [\d,]+ running 117 of 300 blocks/);
    release();
    const ended = await desk.untilEnded(path);
    expect(textOf(ended)).toContain('300 blocks read, 0 transfers of your addresses compared: no differences');
    expect(textOf(ended)).toContain('300 of 300 blocks');
  },
);

test('what the ledger misses is found with its rescan, which one click away pays the invoice and stands in the audit log', async () => {
  const { books } = desk;
  const { id } = await books.invoice(25_000_000n);
  const status = async () => (await findInvoicePayment(books.db, books.project.id, id))?.status;
  const { address = '', payableMicro = 0n } = (await findInvoicePayment(books.db, books.project.id, id)) ?? {};
  await books.send(address, payableMicro);
  const missed = await books.record(() => true);
  const blocks = { from: String(missed.from), to: String(missed.to) };
  const verified = await desk.start('verify', blocks, { 'x-actor': 'vera' });
  const found = await desk.untilEnded(verified);
  expect(textOf(found)).toMatch(/missing from the ledger in T/);
  expect(textOf(found)).toContain(`rescan blocks ${missed.from} to ${missed.to}`);
  expect(found.text).toContain(`href="${verified}/rescan"`);
  expect((await desk.get(verified, { 'x-actor': 'vera' })).text).not.toContain(`${verified}/rescan`);
  const reply = await desk.send(`${verified}/rescan`, {}, POINT);
  const rescanned = await desk.untilEnded(reply.headers.get('location') ?? '');
  expect(textOf(rescanned)).toMatch(
    /blocks read; added to the ledger: 1 matched, 0 duplicate, 0 unmatched, 0 outgoing/,
  );
  expect(await status()).toBe('PAID');
  const { data } = await listAudit.run(books, commandActor('test'), readAuditFilter({ action: 'chain.rescanned' }));
  expect(data).toMatchObject([
    { actor: { kind: 'console', name: 'Otto' }, origin: '192.0.2.7', detail: { added: { matched: 1 } } },
  ]);
  const again = await desk.untilEnded(await desk.start('rescan', blocks));
  expect(textOf(again)).toContain('added to the ledger: 0 matched');
});

longTest(
  'all balances are compared, and those that are not the same are shown with the command that looks closer',
  async () => {
    const { books } = desk;
    const ended = await desk.untilEnded(await desk.start('reconcile'));
    expect(textOf(ended)).toMatch(/\d of \d addresses match the chain/);
    await books.send(books.project.addresses[1] ?? '', 9_000_003n);
    await books.record(() => true);
    const odd = await desk.untilEnded(await desk.start('reconcile'));
    expect(textOf(odd)).toMatch(/1 of 2 addresses match the chain/);
    expect(textOf(odd)).toMatch(/quittance chain repair --network devnet --from \d+ --to \d+/);
    expect(textOf(odd)).toMatch(/T\w{4}…\w{5} [\d.-]+ [\d.-]+ 9\.000003/);
  },
);

test('a job is stopped by who may start it, at once, and says how far it came', async () => {
  release = desk.hold(10);
  const path = await desk.start('rescan', range, POINT);
  await eventually(
    () => desk.get(path),
    ({ text }) => text.includes('57 of 300'),
  );
  const page = await desk.get(path, { 'x-actor': 'vera' });
  expect(page.text).not.toContain('>Stop<');
  const token = tokenIn(await desk.get(path), `${path}/stop`);
  expect((await desk.post(`${path}/stop`, { token }, { 'x-actor': 'vera' })).status).toBe(403);
  expect((await desk.post(`${path}/stop`, { token }, POINT)).status).toBe(409);
  const stopped = await desk.post(`${path}/stop`, { token });
  expect([stopped.status, stopped.headers.get('location')]).toEqual([303, path]);
  const ended = await desk.untilEnded(path);
  const last = Number(range.from) + 56;
  expect(textOf(ended)).toContain(
    `blocks ${range.from} to ${last} are done; to continue, start a job at block ${last + 1}`,
  );
  expect(ended.text).toContain('>stopped<');
  expect((await desk.post(`${path}/stop`, { token })).text).toContain('was already sent');
});

test('a second job of the network is refused with what runs, by whom, and since when', async () => {
  release = desk.hold(0);
  const path = await desk.start('verify', few);
  for (const [kind, fields] of [
    ['rescan', few],
    ['reconcile', {}],
  ] as const) {
    const refused = await desk.send(`/chain/${kind}`, fields, POINT);
    expect(refused.status).toBe(409);
    expect(textOf(refused)).toMatch(
      /a job for devnet is already running: verify blocks \d+ to \d+, started by Ana at 20/,
    );
  }
  release();
  await desk.untilEnded(path);
  await desk.untilEnded(await desk.start('verify', few));
});

test.each([
  [{ from: '-1', to: '5' }, 'is not a block number'],
  [{ from: '1e3', to: '2000' }, 'is not a block number'],
  [{ from: '', to: '5' }, 'is not a block number'],
  [{ from: '１', to: '5' }, 'is not a block number'],
  [{ from: '9', to: '5' }, '“First block” 9 is above “Last block” 5'],
  [{ from: '1', to: '100001' }, 'are more than 100000 at once'],
  [{ from: '1', to: '99999' }, 'the last recorded block'],
  [{ from: 'קפה'.repeat(33), to: '<b>x' }, 'is not a block number'],
])('blocks %j are refused beside the form: %s', async (fields, says) => {
  const refused = await desk.send('/chain/verify', fields);
  expect([refused.status, textOf(refused)]).toEqual([400, expect.stringContaining(says)]);
  expect(refused.text).not.toContain('<b>x');
  expect((await desk.get('/chain')).text).not.toContain('>running<');
});

test('a form of a job is taken once, from its session, with its own fields, and by nobody whose role may not', async () => {
  const path = '/chain/rescan';
  const token = tokenIn(await desk.get(path), path);
  const tries: [Record<string, string> | string, Record<string, string>, number][] = [
    [{ token, ...few }, { 'x-actor': 'vera' }, 403],
    [{ token, ...few }, { 'x-session': '2' }, 409],
    [few, {}, 409],
    [{ token, ...few, network: 'mainnet' }, {}, 400],
    [`token=${token}&from=1&from=2&to=3`, {}, 400],
    [{ token, ...few }, { 'sec-fetch-site': 'cross-site' }, 403],
    [{ token, ...few }, { 'content-type': 'application/json' }, 400],
  ];
  for (const [form, headers, status] of tries) {
    expect([form, headers, (await desk.post(path, form, headers)).status]).toEqual([form, headers, status]);
  }
  expect((await desk.get(path, { 'x-actor': 'vera' })).status).toBe(403);
  expect((await desk.get('/chain/verify', { 'x-actor': 'vera' })).status).toBe(200);
  const first = await desk.post(path, { token, ...few });
  expect(first.status).toBe(303);
  expect((await desk.post(path, { token, ...few })).status).toBe(409);
  await desk.untilEnded(first.headers.get('location') ?? '');
});

test.each(['job_x', 'job_01h455vb4pex5vsknk084sn02q', '<b>x', '%00', '..%2f..'])(
  'the job %s is as unknown as any other',
  async (jobId) => {
    const path = `/chain/jobs/${encodeURIComponent(jobId)}`;
    for (const reply of [
      await desk.get(path),
      await desk.get(`${path}/rescan`),
      await desk.post(`${path}/stop`, { token: 'x' }),
    ]) {
      expect([reply.status, textOf(reply)]).toEqual([404, expect.stringContaining('there is no job')]);
      expect(reply.text).not.toContain('<b>x');
    }
  },
);

test('where the process has no nodes of a network, that is said, with the command, and nothing is started', async () => {
  const { db, now } = desk.books;
  const bare = await openConsole({ db, now, publicUrl: () => 'http://127.0.0.1' }, { networks: [] });
  try {
    const page = await bare.get('/chain');
    expect(textOf(page)).toContain('This process has no devnet nodes');
    expect(textOf(page)).toContain('quittance chain verify --network devnet');
    const form = await bare.get('/chain/verify');
    expect([form.status, textOf(form)]).toEqual([409, expect.stringContaining('has no devnet nodes')]);
  } finally {
    await bare.stop();
  }
});

test('what the chain denies ends a rescan with the repair, and says which blocks were done', async () => {
  const { books } = desk;
  const { to } = await books.record();
  await withClient(books.database.owner, (client) =>
    client.query(
      `insert into transfers (id, project_id, network, address_id, tx_id, log_index, block_number, block_id, block_time, from_address,
         amount_micro, kind, verified, nodes)
       select gen_random_uuid(), project_id, network, id, decode(repeat('ab', 32), 'hex'), 0, $1, decode(repeat('cd', 32), 'hex'), now(),
         address, 7, 'unmatched', 'single-node', '{}' from addresses where address = $2`,
      [to, books.project.addresses[0]],
    ),
  );
  const blocks = { from: String(to - 19), to: String(to) };
  const failed = await desk.untilEnded(await desk.start('rescan', blocks));
  expect(textOf(failed)).toMatch(/transfer (ab){32} \(0\) in block \d+ is in the ledger, but not on the chain/);
  expect(textOf(failed)).toContain(`quittance chain repair --network devnet --from ${to - 19} --to ${to}`);
  expect(textOf(failed)).toMatch(
    new RegExp(`blocks ${to - 19} to \\d+ are done; to continue, start a job at block \\d+`),
  );
  expect(failed.text).toContain('>failed<');
});

test('a process that stops ends its jobs within seconds, between two transactions, though its nodes hang', async () => {
  const { books } = desk;
  const sandboxToken = 's'.repeat(43);
  const devnet = { nodes: [unlimitedNode(books.devnet.url)], usdt: books.usdt, agreement: 1 };
  const { connectionString } = books.database;
  const { url, stop } = await startConsoleOver(connectionString, { networks: { devnet }, sandboxToken });
  const cookie = `quittance=${sandboxToken}`;
  const get = async (path: string) => (await fetch(url + path, { headers: { cookie } })).text();
  const token = tokenIn({ text: await get('/chain/rescan') } as Reply, '/chain/rescan');
  const started = await fetch(`${url}/chain/rescan`, {
    ...{ method: 'POST', redirect: 'manual', body: new URLSearchParams({ token, ...range }) },
    headers: { cookie, origin: url, 'sec-fetch-site': 'same-origin' },
  });
  const path = started.headers.get('location') ?? '';
  await eventually(
    () => get(path),
    (text) => /value="[1-9]\d*" max="300"/.test(text),
  );
  books.devnet.setFault({ kind: 'hang' });
  onTestFinished(() => books.devnet.setFault());
  const { seconds } = await countSeconds(stop);
  expect(seconds).toBeLessThan(9);
  await expect(get(path)).rejects.toThrow();
});
