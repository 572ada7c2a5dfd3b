import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { encodeId } from '../../../src/core/domain/ids.ts';
import type { Static, TSchema } from '../../../src/core/runtime/type.ts';
import { insertCursor, setHalt } from '../../../src/core/store/chain/cursor.ts';
import { ACTIONS, type ActionName, type Rule } from '../../../src/faces/operator/actions.ts';
import type { Operation } from '../../../src/faces/operator/operation.ts';
import { addAddresses, retireAddresses } from '../../../src/faces/operator/subjects/addresses.ts';
import { addChannel } from '../../../src/faces/operator/subjects/notify.ts';
import { insertPasskey } from '../../../src/faces/operator/subjects/passkeys.ts';
import { archiveProject } from '../../../src/faces/operator/subjects/projects.ts';
import { personActor } from '../../../src/faces/operator/subjects/sessions.ts';
import { addEndpoint } from '../../../src/faces/operator/subjects/webhooks.ts';
import { newAddress } from '../../addresses/shop.ts';
import { createAuthenticator } from '../../people/authenticator.ts';
import { ANN, CONSOLE, from, joinByPasskey } from '../../people/desk.ts';
import { NOT_IN_CONSOLE } from '../../support/page-or-command.ts';
import { createTestProject } from '../../support/service.ts';
import { openConsole } from '../open-console.ts';
import { operationDeps } from '../operation-deps.ts';
import { cookieOf, formOf, passkeyOptionsOf } from './ask-again.ts';

const XPUB =
  'xpub6D1AabNHCupeiLM65ZR9UStMhJ1vCpyV4XbZdyhMZBiJXALQtmn9p42VTQckoHVn8WNqS7dqnJokZHAHcHGoaQgmv8D45oNUKx6DZMNZBCd';
const DERIVE = '/addresses/derive';
const GRACE_MS = 300_000;
/** How many other forms each proof is tested with: the ones that follow it. */
const OTHER_FORMS = 6;

/** The project of a form, and its subject or content. */
type Target = { project: 0 | 1; subject: 0 | 1 };
type Row = {
  action: ActionName;
  /** Returns its path. */
  at(seat: Seat, target: Target): string;
  fill?(seat: Seat, target: Target): Record<string, string>;
};

const waitingOf = ({ waiting }: Seat, { project, subject }: Target) => waiting[project]?.[subject];
const retiredOf = ({ projects }: Seat, { project, subject }: Target) => projects[project]?.addresses[1 + subject] ?? '';
const endpointOf = ({ endpoints }: Seat, { project, subject }: Target) => `/webhooks/${endpoints[project]?.[subject]}`;
const personOf = ({ people }: Seat, { subject }: Target) => `/settings/people/${people[subject]}`;
const either = ({ subject }: Target, one: string, other: string) => (subject === 0 ? one : other);

/** Every form of the console that requires a proof. */
const ROWS: readonly Row[] = [
  {
    action: 'addAddresses',
    at: () => '/addresses/add',
    fill: ({ fresh }, { subject }) => {
      const list = fresh[subject] ?? '';
      return { list, firstEnding: list.slice(-6), lastEnding: list.slice(-6) };
    },
  },
  {
    action: 'deriveAddresses',
    at: () => `${DERIVE}/compare`,
    fill: (_seat, target) => ({ xpub: XPUB, count: either(target, '1', '2'), ending: 'hGWYdH' }),
  },
  {
    action: 'activateAddresses',
    at: (seat, target) => `/addresses/${retiredOf(seat, target)}/activate`,
    fill: (seat, target) => ({ ending: retiredOf(seat, target).slice(-6) }),
  },
  {
    action: 'confirmAddressChange',
    at: (seat, target) => `/addresses/changes/${waitingOf(seat, target)?.changeId}/confirm`,
    fill: (seat, target) => ({ ending: waitingOf(seat, target)?.address.slice(-6) ?? '' }),
  },
  {
    action: 'updateProject',
    at: () => '/settings/project/look',
    fill: (_seat, target) => ({ name: either(target, 'Shop', 'Evil') }),
  },
  {
    action: 'updateProject',
    at: () => '/settings/project/rules',
    fill: (_seat, target) => ({ policy: 'tail', maxSurcharge: '0.01', lifetime: either(target, '20m', '60m') }),
  },
  { action: 'archiveProject', at: () => '/settings/project/archive' },
  { action: 'unarchiveProject', at: () => '/settings/project/unarchive' },
  {
    action: 'createKey',
    at: () => '/settings/keys/new',
    fill: (_seat, target) => ({ name: either(target, 'shop', 'evil'), create: 'yes' }),
  },
  {
    action: 'createAdminKey',
    at: () => '/settings/admin-keys/new',
    fill: (_seat, target) => ({ name: 'cron', role: either(target, 'viewer', 'operator'), scope: 'all' }),
  },
  { action: 'rotateReceiptKey', at: () => '/settings/receipt-key' },
  {
    action: 'addEndpoint',
    at: () => '/webhooks/add',
    fill: (_seat, target) => ({ url: `http://127.0.0.1:${either(target, '7001', '7002')}/`, 'invoice.paid': 'yes' }),
  },
  {
    action: 'updateEndpoint',
    at: (seat, target) => `${endpointOf(seat, target)}/change`,
    fill: () => ({ url: 'http://127.0.0.1:7003/', 'invoice.paid': 'yes' }),
  },
  {
    action: 'rotateSecret',
    at: (seat, target) => `${endpointOf(seat, target)}/rotate`,
    fill: () => ({ overlap: '24h' }),
  },
  {
    action: 'addChannel',
    at: () => '/settings/notifications/new/webhook',
    fill: (_seat, target) => ({ name: either(target, 'one', 'two'), url: 'https://ops.example.com/quittance' }),
  },
  {
    action: 'removeChannel',
    at: ({ channels }, { subject }) => `/settings/notifications/${channels[subject]}/remove`,
  },
  { action: 'resumeChain', at: () => '/chain/resume' },
  { action: 'requestBackup', at: () => '/settings/system/backup' },
  {
    action: 'invitePerson',
    at: () => '/settings/people/new',
    fill: (_seat, target) => ({ login: either(target, 'dora', 'eve'), role: 'viewer', scope: 'all' }),
  },
  {
    action: 'changeRole',
    at: (seat, target) => `${personOf(seat, target)}/role`,
    fill: () => ({ role: 'operator', scope: 'all' }),
  },
  { action: 'resetPerson', at: (seat, target) => `${personOf(seat, target)}/reset` },
  { action: 'removePerson', at: (seat, target) => `${personOf(seat, target)}/remove` },
  {
    action: 'addPasskey',
    at: () => '/settings/me/passkeys/new',
    fill: (_seat, target) => ({ name: either(target, 'laptop', 'phone') }),
  },
  {
    action: 'removePasskey',
    at: ({ passkeys }, { subject }) => `/settings/me/passkeys/${passkeys[subject]}/remove`,
  },
];

const stepUpOf = (action: ActionName) => (ACTIONS[action] as Rule).stepUp;

/** Creates two projects with everything that a form can be about, and a signed-in owner with a passkey. */
async function seat() {
  const backups = { name: 'QUITTANCE_BACKUP_DIR', value: '/backups', isSet: true, isSecret: false };
  const desk = await openConsole({ settings: [backups] });
  const { db, deps } = desk;
  const ann = await joinByPasskey(desk, 'ann');
  const people = [];
  for (const login of ['bob', 'carl']) people.push(await joinByPasskey(desk, login, 'viewer'));
  const { person } = await joinByPasskey(desk, 'dan');
  const operating = operationDeps(deps);
  const run = <Input extends TSchema, Wanted, Outcome>(
    operation: Operation<Input, Wanted, Outcome>,
    given: Static<Input>,
    actor = ANN,
  ) => operation.run(operating, actor, operation.read(given as never, deps.now()));

  const projects: Awaited<ReturnType<typeof createTestProject>>[] = [];
  for (const _ of [0, 1]) projects.push(await createTestProject(db, { addressCount: 3 }));
  const [waiting, endpoints]: [{ changeId: string; address: string }[][], string[][]] = [[], []];
  for (const { projectId, addresses } of projects) {
    const entries = (texts: readonly string[]) => texts.map((text) => ({ text, place: 'the address' }));
    await run(retireAddresses, { projectId, entries: entries(addresses.slice(1)) });
    const proposed = [];
    for (const { address } of [newAddress(), newAddress()]) {
      const given = { projectId, entries: entries([address]), isChecked: true, isFresh: false };
      const added = await run(addAddresses, given, personActor(person, from()));
      if (added.kind !== 'proposed') throw new Error('the addresses do not wait');
      proposed.push({ changeId: added.view.proposed.changeId, address });
    }
    waiting.push(proposed);
    const made = [];
    for (const port of [8001, 8002]) {
      const given = { projectId, url: `http://127.0.0.1:${port}/`, events: ['all'] };
      made.push((await run(addEndpoint, given)).endpointId);
    }
    endpoints.push(made);
  }
  const channels = [];
  for (const name of ['a', 'b']) {
    const url = `https://ops.example.com/${name}`;
    channels.push((await run(addChannel, { kind: 'webhook', name, url, isOwnNetwork: false })).channelId);
  }
  const passkeys = [];
  for (const name of ['one', 'two']) {
    const [id, publicKey] = [randomBytes(16), randomBytes(77)];
    const spare = { id, publicKey, name, counter: 0, transports: [], createdAt: deps.now() };
    await insertPasskey(db, ann.person.id, spare);
    passkeys.push(id.toString('base64url'));
  }
  await insertCursor(db, 'devnet', { number: 7, id: '7'.repeat(64), time: deps.now() }, null);
  await setHalt(db, 'devnet', 'block 7 contradicts');
  return {
    ...{ ...desk, ann, cookie: cookieOf(ann.token), projects, waiting, endpoints, channels, passkeys },
    archive: async () => {
      for (const { projectId } of projects) await run(archiveProject, { projectId });
    },
    people: people.map((each) => encodeId('usr', each.person.id)),
    fresh: [newAddress().address, newAddress().address],
  };
}

type Seat = Awaited<ReturnType<typeof seat>>;
type Page = { status: number; text: string };
const A: Target = { project: 0, subject: 0 };

/** Opens, fills in and submits a form with additional values. Returns `null` if the form can't be opened. */
async function send(world: Seat, { action, at, fill }: Row, target: Target, proof: Record<string, string> = {}) {
  const { ask, cookie, projects } = world;
  const [path, filled] = [at(world, target), fill?.(world, target) ?? {}];
  const query = new URLSearchParams({ project: projects[target.project]?.projectId ?? '' });
  let page: Page = await ask(`${action === 'deriveAddresses' ? DERIVE : path}?${query}`, { cookie });
  if (page.status !== 200) return null;
  if (action === 'deriveAddresses') {
    // This form is the second step of another one.
    const { ending: _, ...first } = filled;
    page = await ask(DERIVE, { cookie, form: { ...formOf(page, DERIVE), ...first } });
  }
  const form = formOf(page, path);
  const given = await createdBy(world, action, page);
  const sent = await ask(path, { cookie, form: { ...form, ...filled, ...given, ...proof } });
  return { path, sent, ofProject: form['project'] };
}

/** Keeps the passkey created for a form, because the proof must come with the same one. */
const created = new WeakMap<Seat, string>();

async function createdBy(world: Seat, action: ActionName, page: Page): Promise<Record<string, string>> {
  if (action !== 'addPasskey') return {};
  const value = created.get(world) ?? JSON.stringify(createAuthenticator(CONSOLE).create(passkeyOptionsOf(page)));
  created.set(world, value);
  return { created: value };
}

/** Requests the proof for a form and signs it. */
async function sign(world: Seat, row: Row, target = A) {
  const asked = await send(world, row, target);
  if (asked?.sent.status !== 200 || !asked.sent.text.includes('Confirm this change')) {
    throw new Error(`${row.action} asks for no proof: ${asked?.sent.status} ${asked?.sent.text.slice(0, 4000)}`);
  }
  return { ...asked, proof: { passkey: JSON.stringify(world.ann.key.sign(passkeyOptionsOf(asked.sent))) } };
}

/** Submits the signed proof from the page that asked for it. */
async function finish({ ask, cookie }: Seat, { path, sent, proof }: Awaited<ReturnType<typeof sign>>) {
  return ask(path, { cookie, form: { ...formOf(sent, path, 'passkey'), ...proof } });
}

/** Counts the recorded actions other than proofs and sign-ins. */
async function doneIn({ sql }: Seat): Promise<number> {
  const [row] = await sql(`select count(*)::int as count from operator_actions where action not like 'session.%'`);
  return row.count;
}

/** Expects that the proof had no effect: it was refused, or there was no form to submit it with. */
async function refuses(world: Seat, row: Row, target: Target, proof: Record<string, string>) {
  const before = await doneIn(world);
  const reply = await send(world, row, target, proof);
  return [reply === null || reply.sent.status >= 400, (await doneIn(world)) - before];
}
const REFUSED = [true, 0];

/** Runs the forms in an order in which one world can accept all of them. */
async function forEachRow(work: (world: Seat, row: Row) => Promise<void>) {
  const world = await seat();
  for (const row of ROWS) {
    if (row.action === 'unarchiveProject') continue;
    await work(world, row);
  }
  await world.archive();
  for (const row of ROWS) if (row.action === 'unarchiveProject') await work(world, row);
}

test('the forms below are all that ask for a proof', () => {
  const asking = Object.keys(ACTIONS).filter((name) => stepUpOf(name as ActionName) !== undefined);
  const inConsole = asking.filter((name) => !Object.hasOwn(NOT_IN_CONSOLE, name));
  expect([...new Set(ROWS.map(({ action }) => action))].sort()).toEqual(inConsole.sort());
});

test('what decides where money and news go, and who has access, asks every time', () => {
  const each = Object.keys(ACTIONS).filter((name) => stepUpOf(name as ActionName) === 'each');
  const words = /address|derivation|key|endpoint|secret|channel|person|role|adapter/i;
  expect(each.filter((name) => !words.test(name))).toEqual([]);
  const recent = Object.keys(ACTIONS).filter((name) => stepUpOf(name as ActionName) === 'recent');
  expect(recent.filter((name) => words.test(name))).toEqual([]);
});

test('a passkey that signed a form proves nothing for another project, another subject or content, or another form', async () => {
  await forEachRow(async (world, row) => {
    const { proof, ofProject } = await sign(world, row);
    const others: Target[] = [{ project: 0, subject: 1 }];
    if (ofProject !== undefined) others.push({ project: 1, subject: 0 }, { project: 1, subject: 1 });
    for (const target of others) {
      const isSame = row.at(world, target) === row.at(world, A) && target.project === A.project;
      // A form without fields and without a subject in its path is the same for both subjects.
      if (isSame && row.fill === undefined) continue;
      expect([row.action, target, ...(await refuses(world, row, target, proof))]).toEqual([
        ...[row.action, target, ...REFUSED],
      ]);
    }
    const index = ROWS.indexOf(row);
    for (const other of [...ROWS, ...ROWS].slice(index + 1, index + 1 + OTHER_FORMS)) {
      const result = [row.action, other.action, ...(await refuses(world, other, A, proof))];
      expect(result).toEqual([row.action, other.action, ...REFUSED]);
    }
  });
});

test('a proof is taken once; another form that decides who has access asks again at once, and other forms after five minutes', async () => {
  await forEachRow(async (world, row) => {
    const before = await doneIn(world);
    const signed = await sign(world, row);
    const done = await finish(world, signed);
    expect([row.action, [200, 303].includes(done.status), (await doneIn(world)) > before]).toEqual([
      ...[row.action, true, true],
    ]);
    if (stepUpOf(row.action) === 'each') {
      expect([row.action, ...(await refuses(world, row, A, signed.proof))]).toEqual([row.action, ...REFUSED]);
      expect((await send(world, row, { project: 0, subject: 1 }))?.sent.text ?? 'Confirm this change').toContain(
        'Confirm this change',
      );
    }
    world.pass(GRACE_MS);
    expect([row.action, ...(await refuses(world, row, A, signed.proof))]).toEqual([row.action, ...REFUSED]);
  });
});

test('a proof that was asked for more than five minutes ago is too old', async () => {
  await forEachRow(async (world, row) => {
    const signed = await sign(world, row);
    const before = await doneIn(world);
    world.pass(GRACE_MS);
    const late = await finish(world, signed);
    expect([row.action, late.status, (await doneIn(world)) - before]).toEqual([row.action, 403, 0]);
  });
});

test('a form that may go by a recent proof does so for five minutes, in the same session alone', async () => {
  const world = await seat();
  const rules = ROWS.find(({ action, at }) => action === 'updateProject' && at(world, A).endsWith('rules'));
  const invite = ROWS.find(({ action }) => action === 'invitePerson');
  if (rules === undefined || invite === undefined) throw new Error('a form is gone');
  await finish(world, await sign(world, invite));
  world.pass(GRACE_MS - 1);
  const form = { passkey: JSON.stringify(world.ann.key.sign(passkeyOptionsOf(await world.ask('/sign-in')))) };
  const { cookie = '' } = await world.ask('/sign-in', { form });
  expect((await send({ ...world, cookie }, rules, A))?.sent.text).toContain('Confirm this change');
  expect((await send(world, rules, A))?.sent.text).not.toContain('Confirm this change');
  world.pass(1);
  expect((await send(world, rules, A))?.sent.text).toContain('Confirm this change');
});
