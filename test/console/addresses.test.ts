import { randomBytes } from 'node:crypto';
import { parseAddress } from '@quittance/tron/address';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createNodePool } from '../../src/core/chain/nodes/node-pool.ts';
import { createKnownTerms } from '../../src/core/chain/verify/fee-terms.ts';
import { encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { unlimitedNode } from '../../src/core/domain/node.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { createMetrics } from '../../src/core/runtime/metrics.ts';
import { findAccountKey } from '../../src/core/store/ledger/account-keys.ts';
import { listAddresses } from '../../src/core/store/ledger/addresses.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { listAudit, readAuditFilter } from '../../src/faces/operator/subjects/audit.ts';
import { changeRole, findPerson, invitePerson, readNewPerson } from '../../src/faces/operator/subjects/people.ts';
import { personActor } from '../../src/faces/operator/subjects/sessions.ts';
import type { SignedAction } from '../../src/faces/operator/subjects/sign-in.ts';
import { newAddress } from '../addresses/shop.ts';
import { createInvoice, createTestProject, eventually, payableOf } from '../support/service.ts';
import {
  actorNamed,
  newInvoice,
  type Reply,
  send,
  startTestConsole,
  type TestConsole,
  tokenIn,
  withOwner,
} from './console.ts';

const XPUB =
  'xpub6D1AabNHCupeiLM65ZR9UStMhJ1vCpyV4XbZdyhMZBiJXALQtmn9p42VTQckoHVn8WNqS7dqnJokZHAHcHGoaQgmv8D45oNUKx6DZMNZBCd';
const [FIRST, SECOND] = ['TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH', 'TSeJkUh4Qv67VNFwY8LaAxERygNdy6NQZK'];
const DAY_MS = 86_400_000;

let console_: TestConsole;

beforeAll(async () => {
  console_ = await startTestConsole();
  const { db, clock } = console_.service;
  const deps = { db, now: () => unixMs(clock.now()), random: (bytes: number) => randomBytes(bytes) };
  for (const [name, role] of [
    ['ana', 'owner'],
    ['bob', 'owner'],
    ['otto', 'operator'],
    ['vera', 'viewer'],
  ] as const) {
    const consoleUrl = 'https://console.example';
    await invitePerson.run({ ...deps, consoleUrl }, commandActor('test'), readNewPerson({ login: name, role }));
    const person = await findPerson(db, { id: null, login: name });
    if (person === null) throw new Error(`${name} is not there`);
    console_.actors[name] = personActor(person, { origin: '192.0.2.7', requestId: null });
  }
});
afterAll(() => console_.stop());

const as = (name: string) => ({ 'x-actor': name });
const own = async () =>
  (await listAddresses(console_.service.db, console_.service.project.id)).map(({ address }) => address as string);
const ending = (address: string) => address.slice(-6);

/** Fills in and submits the form of a page. */
async function submit(path: string, form: Record<string, string>, name = 'ana'): Promise<Reply> {
  return console_.post(path, { token: tokenIn(await console_.get(path, as(name)), path), ...form }, as(name));
}

const addOne = (address: string, name = 'ana') =>
  submit('/addresses/add', { list: address, firstEnding: ending(address), lastEnding: ending(address) }, name);
const useAgain = (address: string, typed = ending(address)) =>
  submit(`/addresses/${address}/activate`, { ending: typed });
const changeIn = ({ text }: Reply) => /chg_[0-9a-z]{26}/.exec(text)?.[0] ?? 'none';

test('who has the session of an owner adds an address: it is announced, and no invoice shows it for a day', async () => {
  const { service } = console_;
  const before = await own();
  const { address } = newAddress();
  const waits = await addOne(address);
  expect([waits.status, waits.text.includes('The addresses are not used for invoices yet')]).toEqual([200, true]);
  const change = changeIn(waits);
  const today = await console_.get('/', as('vera'));
  expect(today.text).toContain('address-change-pending');
  expect(today.text).toContain(address);
  expect((await console_.get('/addresses', as('vera'))).text).toContain(`/addresses/changes/${change}`);
  // If every honest address is retired, an invoice is refused rather than given the attacker's address.
  for (const each of before) await submit(`/addresses/${each}/retire`, { note: 'for now' }, 'otto');
  expect((await createInvoice(service)).status).toBe(409);
  service.clock.advance(DAY_MS - 60_000);
  expect((await createInvoice(service)).status).toBe(409);
  expect(await own()).toEqual(before);
  service.clock.advance(60_000);
  await eventually(own, (addresses) => addresses.includes(address));
  const { body } = await createInvoice(service);
  expect((await payableOf(service, body.invoiceId)).address).toBe(address);
  expect((await console_.get(`/addresses/changes/${change}`)).text).toContain('Added');
  expect((await console_.get('/')).text).not.toContain('address-change-pending');
  for (const each of before) expect((await useAgain(each)).status).toBe(303);
});

test('another owner sees each address and confirms; the same person in another session, an operator and a demoted owner cannot', async () => {
  const { address } = newAddress();
  const change = changeIn(await addOne(address));
  const [page, path] = [`/addresses/changes/${change}`, `/addresses/changes/${change}/confirm`];
  const refused = await console_.post(
    path,
    { token: tokenIn(await console_.get(path, { 'x-actor': 'ana', 'x-session': '2' }), path), ending: ending(address) },
    { 'x-actor': 'ana', 'x-session': '2' },
  );
  expect([refused.status, refused.text.includes('you proposed this change')]).toEqual([409, true]);
  expect((await console_.get(page)).text).not.toContain('add them now');
  expect((await console_.get(path, as('otto'))).status).toBe(403);
  expect((await console_.post(path, { ending: ending(address) }, as('otto'))).status).toBe(403);
  const demoted = { ...(console_.actors['bob'] ?? actorNamed('bob')), role: 'operator' } as const;
  console_.actors['demoted'] = demoted;
  expect((await console_.post(path, { ending: ending(address) }, as('demoted'))).status).toBe(403);
  const form = await console_.get(path, as('bob'));
  expect([form.text.includes(address), form.text.includes('ana')]).toEqual([true, false]);
  expect((await console_.get(page, as('bob'))).text).toContain('192.0.2.7');
  const wrong = await submit(path, { ending: 'abcdef' }, 'bob');
  expect([wrong.status, wrong.text.includes('nothing was done')]).toEqual([400, true]);
  expect(await own()).not.toContain(address);
  const done = await submit(path, { ending: ending(address) }, 'bob');
  expect([done.status, done.headers.get('location')]).toEqual([303, `${page}?done=confirmed`]);
  expect(await own()).toContain(address);
  const { data } = await listAudit.run(console_.service, commandActor('test'), readAuditFilter({ subject: address }));
  expect(data.map(({ action, actor }) => [action, actor.name])).toEqual([
    ['address.added', 'bob'],
    ['address.confirmed', 'bob'],
    ['address.proposed', 'ana'],
  ]);
});

test('an operator withdraws, and who proposed is told that nothing waits any more', async () => {
  const { address } = newAddress();
  const path = `/addresses/changes/${changeIn(await addOne(address))}`;
  expect((await console_.get(`${path}/withdraw`, as('vera'))).status).toBe(403);
  const done = await submit(`${path}/withdraw`, {}, 'otto');
  expect([done.status, done.headers.get('location')]).toEqual([303, `${path}?done=withdrawn`]);
  const again = await submit(`${path}/confirm`, { ending: ending(address) }, 'bob');
  expect([again.status, again.text.includes('is no longer pending')]).toEqual([409, true]);
  expect(await own()).not.toContain(address);
});

test('a change of the proposer’s role keeps what it proposed out', async () => {
  const { db, clock } = console_.service;
  const { address } = newAddress();
  const change = changeIn(await addOne(address));
  const now = () => unixMs(clock.now());
  await changeRole.run({ db, now }, commandActor('test'), { person: 'bob', role: 'owner', projects: null });
  await changeRole.run({ db, now }, commandActor('test'), { person: 'ana', role: 'owner', projects: null });
  clock.advance(DAY_MS);
  const page = await eventually(
    () => console_.get(`/addresses/changes/${change}`),
    ({ text }) => !text.includes('>Waiting<'),
  );
  expect(page.text).toContain(
    'the person or key that proposed the addresses was later removed, reset, revoked or given a different role',
  );
  expect(await own()).not.toContain(address);
  expect((await console_.get('/')).text).toContain('address-change-failed');
});

test('what is wrong with a list is told beside it, before anybody proves anything, and the list stays', async () => {
  const [one, two] = [newAddress().address, newAddress().address];
  const right = {
    list: `# from the wallet\n${one}\n${two} # till\n`,
    firstEnding: ending(one),
    lastEnding: ending(two),
  };
  const key = '4f'.repeat(32);
  const cases: [Record<string, string>, string][] = [
    [{ firstEnding: ending(two) }, '“Last six characters of the first address” does not match the end of that address'],
    [{ lastEnding: ending(one) }, '“Last six characters of the last address” does not match the end of that address'],
    [{ lastEnding: ending(two).slice(1) }, 'does not match the end of that address'],
    [{ firstEnding: '' }, 'must be the last 6 characters'],
    [{ list: '# nothing' }, 'contains no address'],
    [{ list: `${one}x`, firstEnding: 'x', lastEnding: 'x' }, 'line 1 of the list'],
    [{ list: `${one}\n${one}`, lastEnding: ending(one) }, 'this address is a duplicate of'],
    [{ list: `${one}\n${key}`, lastEnding: key }, 'this looks like a private key'],
    [{ policy: 'odd' }, 'choose tail, tail-4, tail-3, exact'],
  ];
  for (const [wrong, says] of cases) {
    const reply = await submit('/addresses/add', { ...right, ...wrong });
    expect([reply.status, says, reply.text.includes(says)]).toEqual([400, says, true]);
  }
  const [taken = ''] = await own();
  const reply = await submit('/addresses/add', { ...right, list: `${taken}\n${two}`, firstEnding: ending(taken) });
  expect([reply.status, reply.text.includes('is already in this project')]).toEqual([409, true]);
  expect(reply.text).toContain(`>${taken}\n${two}</textarea>`);
});

test('a key’s addresses are shown to be compared, and the end of #1 is typed from the wallet', async () => {
  const path = '/addresses/derive/compare';
  expect((await console_.get(path)).headers.get('location')).toBe('/addresses/derive');
  const shown = await submit('/addresses/derive', { xpub: XPUB, count: '2', autoLimit: '20' });
  expect([shown.status, shown.text.includes(SECOND), shown.text.includes(`>#1 ${FIRST.slice(0, -6)}......`)]).toEqual([
    200,
    true,
    true,
  ]);
  expect(shown.text).not.toContain(`#1 ${FIRST}`);
  const kept = Object.fromEntries(
    [...shown.text.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)">/g)].map(([, name, value]) => [
      name,
      value,
    ]),
  ) as Record<string, string>;
  expect(kept['seen']).toBe(`${FIRST}\n${SECOND}`);
  const sent = (form: Record<string, string>) => console_.post(path, { ...kept, token: tokenIn(shown, path), ...form });
  const wrong = await sent({ ending: 'abcdef' });
  expect([wrong.status, wrong.text.includes('is not the first address of this key')]).toEqual([400, true]);
  const other = { ...kept, token: tokenIn(wrong, path), ending: ending(FIRST), seen: SECOND };
  expect((await console_.post(path, other)).status).toBe(409);
  const again = await submit('/addresses/derive', { xpub: XPUB, count: '2', autoLimit: '20' });
  const waits = await console_.post(path, { ...kept, token: tokenIn(again, path), ending: ending(FIRST) });
  expect([waits.status, waits.text.includes('The addresses are not used for invoices yet')]).toEqual([200, true]);
  const { db, clock } = console_.service;
  expect(await findAccountKey(db, 'devnet', XPUB)).toBeNull();
  clock.advance(DAY_MS);
  await eventually(own, (addresses) => addresses.includes(SECOND));
  expect(await findAccountKey(db, 'devnet', XPUB)).toMatchObject({ nextIndex: 2, autoDeriveLimit: 20 });
  const next = await submit('/addresses/derive', { count: '1' });
  expect(next.text).toContain('#3 TYJPRrdB5APNeRs4R7fYZSwW3TcrTKw2gx');
  const bad = await submit('/addresses/derive', { xpub: XPUB.slice(0, -1), count: '1' });
  expect([bad.status, bad.text.includes('Copy the whole key again')]).toEqual([400, true]);
  expect((await submit('/addresses/derive', { xpub: XPUB, count: '501' })).text).toContain('use 500 at most');
});

test('an address is retired with what follows in numbers, and the last one with a warning', async () => {
  const { service } = console_;
  await newInvoice(service, 'before-retiring');
  const { address } = await newInvoice(service, 'before-retiring-2');
  const path = `/addresses/${address}/retire`;
  const { text } = await console_.get(path, as('otto'));
  expect(text).toMatch(/\d+ open invoices? stays? payable, but new invoices no longer use this address/);
  expect((await console_.get(path, as('vera'))).status).toBe(403);
  const done = await submit(path, { note: 'x'.repeat(2001) }, 'otto');
  expect([done.status, done.text.includes('at most 2000')]).toEqual([400, true]);
  expect((await submit(path, {}, 'otto')).headers.get('location')).toBe('/addresses?done=retired');
  expect((await console_.get('/addresses?done=retired')).text).toContain('new invoices no longer use it');
  expect((await console_.get(`/addresses/${address}/activate`, as('otto'))).status).toBe(403);
  const mistyped = await useAgain(address, 'abcdef');
  expect([mistyped.status, mistyped.text.includes('nothing was done')]).toEqual([400, true]);
  expect((await useAgain(address)).headers.get('location')).toBe('/addresses?done=active');
  for (const each of (await own()).slice(1)) await submit(`/addresses/${each}/retire`, {}, 'otto');
  const [last = ''] = await own();
  expect((await console_.get(`/addresses/${last}/retire`)).text).toContain('every new invoice is refused');
  for (const each of (await own()).slice(1)) expect((await useAgain(each)).status).toBe(303);
});

test('what an address holds by the ledger is what came in and left, and what was never compared says so', async () => {
  const { service } = console_;
  const [{ address }] = [await newInvoice(service, 'held', '5.00')];
  const balance = async () => {
    const { text } = await console_.get('/addresses');
    const row = text.split('<tr').find((each) => each.includes(address)) ?? '';
    return /data-label="Ledger balance"[^>]*><span>(.*?)<\/span>/.exec(row)?.[1]?.replace(/<[^>]*>|,/g, '');
  };
  const before = Number(await balance());
  await send(service, { to: address, amountMicro: 7_000_000n });
  expect(Number(await balance()) - before).toBeCloseTo(7);
});

test('what both said at one block stands apart from what the ledger says now', async () => {
  const { service } = console_;
  // No watcher follows this network here; a watcher would compare the balance again.
  const { projectId, addresses } = await createTestProject(service.db, { network: 'nile' });
  const [address = ''] = addresses;
  await withOwner(service, (client) =>
    client.query(
      `insert into balance_checks (address_id, project_id, network, balance_micro, expected_micro, checked_block, good_block,
         opening_block, opening_micro, node, checked_at, due_at)
       select id, project_id, network, 1234000001, 1234000001, 1000, 1000, 0, 0, 'x', now() - interval '3 hours', now()
       from addresses where address = $1`,
      [address],
    ),
  );
  const { text } = await console_.get(`/addresses?project=${projectId}`);
  const row = (text.split('<tr').find((each) => each.includes(address)) ?? '').replace(/<[^>]*>/g, '');
  expect(row).toMatch(/Same 1,234\.000001 at block 1,000, \d{4}-/);
  expect(text).not.toContain('On the chain');
});

test('pages of addresses go on from a position, and what is no position is told', async () => {
  const { project } = console_.service;
  const many = await createTestProject(console_.service.db, { addressCount: 27 });
  const first = await console_.get(`/addresses?project=${many.projectId}`);
  expect(first.text.match(/class="row"/g)).toHaveLength(25);
  expect(first.text).toContain('after=25');
  const second = await console_.get(`/addresses?project=${many.projectId}&after=25`);
  expect(second.text.match(/class="row"/g)).toHaveLength(2);
  expect(second.text).not.toContain('id="capacity"');
  for (const wrong of ['after=x', 'after=-1', 'after=1e3', 'amount=1,5', 'odd=1', 'after=1&after=2']) {
    expect([wrong, (await console_.get(`/addresses?${wrong}`)).status]).toEqual([wrong, 400]);
  }
  const capacity = await console_.get(`/addresses?project=${project.projectId}&amount=25.00`);
  expect(capacity.text).toContain('payable amounts are free');
});

test('what belongs to a project that the visitor may not see, and what is none, is unknown alike', async () => {
  const { db } = console_.service;
  const other = await createTestProject(db, { addressCount: 1 });
  const [foreign = ''] = other.addresses;
  const change = changeIn(await addOne(newAddress().address));
  const unknown = encodeId('chg', uuidV7(1, randomBytes(10)));
  console_.actors['scoped'] = actorNamed('Scoped', { role: 'operator', projects: [other.id] });
  const pages: [string, string][] = [
    [`/addresses/changes/${change}`, `/addresses/changes/${unknown}`],
    [`/addresses/changes/${change}/withdraw`, `/addresses/changes/${unknown}/withdraw`],
    [`/addresses/${(await own())[0]}/retire`, `/addresses/${newAddress().address}/retire`],
    [
      `/addresses?project=${console_.service.project.projectId}`,
      `/addresses?project=${encodeId('prj', uuidV7(1, randomBytes(10)))}`,
    ],
  ];
  for (const [theirs, none] of pages) {
    const [one, two] = [await console_.get(theirs, as('scoped')), await console_.get(none, as('scoped'))];
    expect([theirs, one.status, two.status]).toEqual([theirs, 404, 404]);
  }
  for (const odd of ['x', 'chg_1', '%00', 'T'.repeat(300)]) {
    expect([odd, (await console_.get(`/addresses/changes/${odd}`)).status]).toEqual([odd, 404]);
    expect([odd, (await console_.get(`/addresses/${odd}/retire`)).status]).toEqual([odd, 404]);
  }
  expect((await console_.get(`/addresses/${foreign}/retire`, as('scoped'))).status).toBe(200);
  await submit(`/addresses/changes/${change}/withdraw`, {}, 'otto');
});

test('a replayed form, one without a token and one of another session do nothing', async () => {
  const { address } = newAddress();
  const form = { list: address, firstEnding: ending(address), lastEnding: ending(address) };
  const token = tokenIn(await console_.get('/addresses/add'), '/addresses/add');
  const attempts: [Record<string, string>, Record<string, string>][] = [
    [form, {}],
    [{ ...form, token }, { 'x-session': '9' }],
    [{ ...form, token }, as('bob')],
  ];
  for (const [sent, headers] of attempts)
    expect((await console_.post('/addresses/add', sent, headers)).status).toBe(409);
  const change = changeIn(await console_.post('/addresses/add', { ...form, token }));
  expect((await console_.post('/addresses/add', { ...form, token })).text).toContain('was already sent');
  await submit(`/addresses/changes/${change}/withdraw`, {}, 'otto');
});

test('whoever confirms proves once more who it is, for the addresses that are shown', async () => {
  const { address } = newAddress();
  const change = changeIn(await addOne(address));
  const asked: SignedAction[] = [];
  const strict = await startTestConsole(console_.service, {
    stepUp: async () => ({
      isRecent: false,
      ask: async (action) => {
        asked.push(action);
        return { passkey: null, hasCode: true };
      },
      take: async (_action, proof) => 'code' in proof && proof.code === '123456',
    }),
  });
  Object.assign(strict.actors, console_.actors);
  const path = `/addresses/changes/${change}/confirm`;
  const send = (page: Reply, form: Record<string, string>) =>
    strict.post(path, { token: tokenIn(page, path), ending: ending(address), ...form }, as('bob'));
  const proof = await send(await strict.get(path, as('bob')), {});
  expect([proof.status, proof.text.includes(address)]).toEqual([200, true]);
  expect(asked).toEqual([{ name: 'confirmAddressChange', input: expect.stringContaining(path) }]);
  const wrong = await send(proof, { code: '000000' });
  expect([wrong.status, wrong.text.includes('Nothing was changed')]).toEqual([403, true]);
  expect(await own()).not.toContain(address);
  expect((await send(wrong, { code: '123456' })).status).toBe(303);
  expect(await own()).toContain(address);
  await strict.stop();
});

test('one click compares a page with the chain, shows the answer, and asks no node twice in a minute', async () => {
  const { db, devnet, clock, nodes } = console_.service;
  const [now, random, metrics] = [() => unixMs(clock.now()), (n: number) => randomBytes(n), createMetrics()];
  const log = createLogger({ level: 'silent' });
  const specs = nodes.map(({ url }) => unlimitedNode(url));
  const pool = createNodePool({ network: 'devnet', nodes: specs, now, log, metrics, blockMs: 3000 });
  const parsed = parseAddress(devnet.usdtContract);
  if (parsed.kind !== 'ok') throw new Error(parsed.reason);
  const about = { db, pool, usdt: parsed.account, agreement: 1, metrics, now, random, publicUrl: '' };
  const asking = await startTestConsole(console_.service, {
    nodes: async () => ({
      withNodes: (network, work) =>
        work({ ...about, network, fees: createKnownTerms(), slotMs: null, patienceMs: 5000 }),
      describeForPayer: () => '',
    }),
  });
  const path = `/addresses/compare/${console_.service.project.projectId}/0`;
  const compare = async (name = 'vera') =>
    asking.post(path, { token: tokenIn(await asking.get('/addresses', as(name)), path) }, as(name));
  clock.advance(120_000);
  const first = await compare();
  expect([first.status, first.text.includes('match the ledger')]).toEqual([200, true]);
  const again = await compare();
  expect(again.text).toContain('were compared less than a minute ago');
  expect((await asking.get('/addresses')).text).toContain('>Same</span>');
  asking.actors['scoped'] = actorNamed('Scoped', { projects: [console_.service.project.id] });
  expect((await asking.get('/addresses', as('scoped'))).text).not.toContain('Compare with the chain');
  expect((await asking.post(path, {}, as('scoped'))).status).toBe(403);
  await asking.stop();
  await pool.close();
});
