import { randomUUID } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { AlarmKind } from '../../src/core/domain/alarm-kinds.ts';
import { findOpenAlarms, raiseAlarm, resolveAlarms } from '../../src/core/store/chain/alarms.ts';
import { clearHalt, findHalt, setHalt } from '../../src/core/store/chain/cursor.ts';
import { saveChainStatus } from '../../src/core/store/chain/status.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { listAudit, readAuditFilter } from '../../src/faces/operator/subjects/audit.ts';
import { withClient } from '../support/postgres-template.ts';
import { type ChainDesk, openChainDesk } from './chain-desk.ts';
import { actorNamed, openConsole, type Reply, tokenIn } from './console.ts';

const HTML = `<img src=x onerror=alert(1)>"'&`;
const RTL = 'قهوة'.repeat(25);

let desk: ChainDesk;
beforeAll(async () => {
  desk = await openChainDesk();
  await desk.books.record();
});
afterAll(() => desk.stop());
beforeEach(async () => {
  await clearHalt(desk.books.db, 'devnet');
  for (const kind of ['contract-event', 'blind', 'halted', 'payment-denied'] as const) {
    await resolveAlarms(desk.books.db, 'devnet', kind);
  }
});

const textOf = ({ text }: Reply) => text.replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ');

const unescaped = (text: string) => text.replaceAll('&#39;', "'");

const raise = (kind: AlarmKind, subject: string, detail = `about ${subject}`) =>
  raiseAlarm(desk.books.db, 'devnet', { id: randomUUID(), kind, subject, detail });

async function openSubjects(): Promise<string[]> {
  return (await findOpenAlarms(desk.books.db, 'devnet')).map(({ subject }) => subject).sort();
}

const node = {
  ...{ url: 'http://node.example/secret-token', operator: HTML, state: 'paused', pausedForMs: 9000, failures: 3 },
  ...{ reason: 'disagrees: it names different producers than the other nodes', requests: 12, refusals: 1 },
  ...{ requestsToday: 11, answerMs: 31.4 },
};

async function writeStatus(): Promise<void> {
  await saveChainStatus(desk.books.db, 'devnet', desk.books.now(), {
    ...{ blind: null, headNumber: 90, ownSolidNumber: 85, nodeSolidNumber: 1086, processedNumber: 80 },
    ...{ catchUp: { blocksPerSecond: 61.26, secondsLeft: 7.2 }, nodes: [node], requestsPerBlock: 2.04 },
  });
}

test('it says where the ledger stands, how far behind and why, and how each node is, without its path', async () => {
  await writeStatus();
  const page = await desk.get('/chain');
  const said = textOf(page);
  expect(page.status).toBe(200);
  expect(said).toContain('Behind 1,006 irreversible blocks are not recorded.');
  expect(said).toContain('catching up: 61.3 blocks per second, about 8 s left');
  expect(said).toMatch(/Watcher: running, last status \d+ s ago/);
  expect(said).toMatch(/Recorded \d+ created 20/);
  expect(said).toContain(
    'paused for 9 s disagrees: it names different producers than the other nodes (3 failures in a row)',
  );
  expect(said).toMatch(/31 ms 11 1 of 12/);
  expect(page.text).not.toContain('secret-token');
  expect(page.text).not.toContain('<img');
  expect(said).toContain('5 producers since');
});

test('each alarm stands with what to do, and only one that tells of what happened once can be closed', async () => {
  await raise('blind', '');
  await raise('contract-event', 'tx-1', `${HTML} ${RTL}`);
  const page = await desk.get('/chain');
  expect(textOf(page)).toContain('2 alarms');
  expect(textOf(page)).toContain('Check the nodes, and add a node if they stay down.');
  expect(textOf(page)).toContain('Read Tether&#39;s announcement.');
  expect(page.text).not.toContain('<img');
  expect(page.text.match(/>Close alarm</g)).toHaveLength(1);
  expect((await desk.get('/chain/alarms/blind.')).status).toBe(404);
  expect((await desk.get('/chain', { 'x-actor': 'vera' })).text).not.toContain('>Close alarm<');
});

test.each(['tx-1', '', 'a/b?c=d&e#f %2F', HTML, RTL])(
  'the alarm about %j is closed by itself, once, with the name of who read it',
  async (subject) => {
    await raise('contract-event', subject);
    await raise('contract-event', 'another');
    const page = await desk.get('/chain');
    const links = [...page.text.matchAll(/href="([^"]*)">Close alarm</g)].map(([, link = '']) => unescaped(link));
    const path = `/chain/alarms/contract-event.${encodeURIComponent(subject)}`;
    expect(links).toContain(path);
    const closed = await desk.send(path.replaceAll("'", '%27'), {}, { 'x-actor': 'otto' });
    expect([closed.status, closed.headers.get('location')]).toEqual([303, '/chain?done=closed']);
    expect(textOf(await desk.get('/chain?done=closed'))).toContain('The alarm is closed.');
    expect(await openSubjects()).toEqual(['another']);
    expect((await desk.get(path)).status).toBe(404);
    const { data } = await listAudit.run(desk.books, commandActor('test'), readAuditFilter({ subject: 'devnet' }));
    expect(data[0]).toMatchObject({
      ...{ action: 'alarm.acknowledged', actor: { name: 'Otto' } },
      detail: { kind: 'contract-event', subject },
    });
  },
);

test('two who close one alarm: the second is told that it is gone', async () => {
  await raise('contract-event', 'tx-9');
  const path = '/chain/alarms/contract-event.tx-9';
  const token = tokenIn(await desk.get(path), path);
  await desk.send(path, {}, { 'x-actor': 'otto' });
  expect((await desk.post(path, { token })).status).toBe(404);
});

test('a halt shows its reason to all, and goes on by the decision of an owner about this halt', async () => {
  await setHalt(desk.books.db, 'devnet', `block 7 contradicts ${HTML}`);
  await raise('halted', '', 'it halted');
  const page = await desk.get('/chain');
  expect(textOf(page)).toContain('The watcher is halted, so no invoices are marked as paid');
  expect(textOf(page)).toContain('block 7 contradicts');
  expect(page.text).not.toContain('<img');
  expect(page.text).toContain('href="/chain/resume"');
  const asOtto = await desk.get('/chain', { 'x-actor': 'otto' });
  expect([textOf(asOtto).includes('block 7'), asOtto.text.includes('/chain/resume')]).toEqual([true, false]);
  for (const name of ['otto', 'vera']) {
    expect((await desk.get('/chain/resume', { 'x-actor': name })).status).toBe(403);
    expect((await desk.post('/chain/resume', {}, { 'x-actor': name })).status).toBe(403);
  }
  const form = await desk.get('/chain/resume');
  expect(textOf(form)).toContain('block 7 contradicts');
  const haltedAt = /name="haltedAt" value="([^"]+)"/.exec(form.text)?.[1] ?? '';

  // Someone else has resumed it, and it has halted for another reason.
  await clearHalt(desk.books.db, 'devnet');
  await setHalt(desk.books.db, 'devnet', 'block 9 is odd');
  const late = await desk.post('/chain/resume', { token: tokenIn(form, '/chain/resume'), haltedAt });
  expect([late.status, textOf(late)]).toEqual([409, expect.stringContaining('devnet halted again at')]);
  expect(textOf(late)).toContain('block 9 is odd');
  expect(await findHalt(desk.books.db, 'devnet')).not.toBeNull();
  const blank = await desk.send('/chain/resume', {});
  expect(blank.status).toBe(409);

  const seen = /name="haltedAt" value="([^"]+)"/.exec(late.text)?.[1] ?? '';
  const done = await desk.post('/chain/resume', { token: tokenIn(late, '/chain/resume'), haltedAt: seen });
  expect([done.status, done.headers.get('location')]).toEqual([303, '/chain?done=resumed']);
  expect(await findHalt(desk.books.db, 'devnet')).toBeNull();
  expect(await openSubjects()).toEqual([]);
  const { data } = await listAudit.run(desk.books, commandActor('test'), readAuditFilter({ action: 'chain.resumed' }));
  expect(data).toMatchObject([{ actor: { name: 'Ana' }, detail: { reason: 'block 9 is odd' } }]);
  const gone = await desk.get('/chain/resume');
  expect([gone.status, textOf(gone)]).toEqual([404, expect.stringContaining('is not halted')]);
});

test('to go on takes a second proof of who it is, of what is shown, and nothing is done before', async () => {
  const { db, now } = desk.books;
  await setHalt(db, 'devnet', 'block 7 contradicts');
  const asked: unknown[] = [];
  const stepUp = {
    isRecent: false,
    ask: async (action: unknown) => {
      asked.push(action);
      return { passkey: null, hasCode: true };
    },
    take: async () => false,
  };
  const strict = await openConsole({ db, now, publicUrl: () => 'http://127.0.0.1' }, { stepUp: async () => stepUp });
  try {
    const form = await strict.get('/chain/resume');
    const haltedAt = /name="haltedAt" value="([^"]+)"/.exec(form.text)?.[1] ?? '';
    const proof = await strict.post('/chain/resume', { token: tokenIn(form, '/chain/resume'), haltedAt });
    expect(textOf(proof)).toContain('Confirm this change');
    expect(textOf(proof)).toContain('block 7 contradicts');
    expect(asked).toEqual([{ name: 'resumeChain', input: expect.stringContaining(haltedAt) }]);
    const wrong = { token: tokenIn(proof, '/chain/resume'), haltedAt, code: '000000' };
    expect((await strict.post('/chain/resume', wrong)).status).toBe(403);
    expect(await findHalt(db, 'devnet')).not.toBeNull();
  } finally {
    await strict.stop();
  }
});

test('who may see some projects only gets no link, and the page that says who may; nobody signed in is led to the sign-in', async () => {
  const { project } = desk.books;
  desk.actors['gast'] = actorNamed('Gast', { role: 'operator', projects: [project.id] });
  const as = { 'x-actor': 'gast' };
  expect((await desk.get('/', as)).text).not.toContain('href="/chain"');
  expect((await desk.get('/', { 'x-actor': 'vera' })).text).toContain('href="/chain"');
  for (const path of ['/chain', '/chain/producers', '/chain/verify', '/chain/resume', '/chain/jobs/job_x']) {
    expect([path, (await desk.get(path, as)).status]).toEqual([path, 403]);
    expect([path, (await desk.get(path, { 'x-actor': 'nobody' })).status]).toEqual([path, 303]);
  }
  for (const path of ['/chain/verify', '/chain/rescan', '/chain/reconcile', '/chain/jobs/job_x/stop']) {
    expect([path, (await desk.post(path, { token: 'x' }, as)).status]).toEqual([path, 403]);
  }
  expect((await desk.get('/chain?project=prj_01h455vb4pex5vsknk084sn02q')).status).toBe(404);
  expect((await desk.get('/chain?colour=red')).status).toBe(400);
});

test('producers stand with their keys, and an owner alone sees how others are accepted', async () => {
  const page = await desk.get('/chain/producers');
  expect(textOf(page)).toMatch(/Producer Signs with T\w{33} its own key/);
  expect(textOf(page)).toContain('first known set');
  expect(textOf(page)).toContain('Then accept the producers on the server');
  expect((await desk.get('/chain/producers', { 'x-actor': 'otto' })).text).not.toContain(
    'Then accept the producers on the server',
  );
});

test('a page with as many alarms as there can be stays small enough for a telephone', async () => {
  await withClient(desk.books.database.owner, (client) =>
    client.query(
      `insert into alarms (id, network, kind, subject, detail)
       select gen_random_uuid(), 'devnet', 'payment-denied', 'inv_' || n, repeat(md5(n::text), 60) from generate_series(1, 150) n`,
    ),
  );
  await writeStatus();
  const page = await desk.get('/chain');
  expect(textOf(page)).toContain('100 alarms');
  expect(gzipSync(page.text).length).toBeLessThan(30_000);
});
