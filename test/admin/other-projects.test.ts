import { randomBytes } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { AppError } from '../../src/core/domain/errors.ts';
import { encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { openDatabase } from '../../src/core/store/db/database.ts';
import { ACTIONS, type Rule } from '../../src/faces/operator/actions.ts';
import { type Actor, commandActor } from '../../src/faces/operator/actor.ts';
import { type LocalOperation, NO_MANIFEST, type OperationDeps, perform } from '../../src/faces/operator/operation.ts';
import { membersOf } from '../../src/faces/operator/option.ts';
import { enableAdapter } from '../../src/faces/operator/subjects/adapters.ts';
import { addAddresses, showAddress } from '../../src/faces/operator/subjects/addresses.ts';
import { listBalances } from '../../src/faces/operator/subjects/balances.ts';
import * as invoices from '../../src/faces/operator/subjects/invoices.ts';
import * as transferExport from '../../src/faces/operator/subjects/transfer-export.ts';
import { ALL } from '../../src/faces/operator/wire/operations.ts';
import { addressOf, at, txIdOf } from '../cli/explain-ledger.ts';
import { openGoldenShop } from '../cli/golden-shop.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import { letRowsStandAlone } from '../support/stand-alone.ts';

/** Members that don't name a thing of a project. A new member must be listed here or in `subjectsOf`. */
const PLAIN = new Set(
  [
    'name network policy maxSurcharge lifetime maxUnpaid maxUnpaidPerMinute ordersPerDay prices support returnUrl',
    'embedOrigins accent logo archived expires allowedIps scopes isChecked isFresh note after amount url description',
    'secret overlap isKeyLost reason kind rate rateUrl ratePath rateTimePath rateMin rateMax confirmRate rateMaxAge',
    'currency from to status type before limit isDryRun isConfirmed isKeyless state resolution tx',
    'format output idempotencyKey direction',
  ].flatMap((line) => line.split(' ')),
);

/** The caller's own things that these operations also need, so that only the named thing decides. */
const besideOf = ({ event, transfer, address }: Own): Readonly<Partial<Record<LocalOperation['action'], Given>>> => ({
  addAddresses: { entries: entry(0xee) },
  ...{ retireAddresses: { entries: entry(address) }, activateAddresses: { entries: entry(address) } },
  addEndpoint: { url: 'https://new.example/hook' },
  enableAdapter: { kind: 'epay', rate: '1', currency: 'USD' },
  explainSubject: { text: 'ambiguous' },
  replayEvents: { events: [event], isDryRun: true },
  replayPeriod: { from: '2026-01-01', isDryRun: true },
  resolveTransfers: { transfers: [transfer], resolution: 'refunded' },
  refundTransfer: { transferId: transfer, tx: txIdOf(0x77) },
  showCapacityOfAmount: { amount: '25.00' },
  showDelivery: { eventId: event },
  createInvoiceByHand: { amount: '5', externalId: 'new' },
  updateEndpoint: { description: 'new' },
  updateProject: { name: 'new' },
});
/** Members that describe new things and don't name existing ones, despite their name. */
const NEW = ['addEndpoint.events', 'updateEndpoint.events', 'createInvoiceByHand.externalId'];

type Given = Record<string, unknown>;
type Own = { event: string; transfer: string; address: number };
const entry = (byte: number) => [{ place: '1', text: addressOf(byte) }];

/** What an answer may reveal about another project's things, and why. */
const TOLD: readonly string[] = [
  // An address belongs to one project of a network. Adding it reveals that it's in use, but not by which project.
  'addAddresses.entries',
];

/** A thing of the shop, and one that doesn't exist, in the form of a member. */
type Subject = readonly [theirs: unknown, nobodys: unknown];
type Shop = Awaited<ReturnType<typeof openGoldenShop>>;

const OWNER = commandActor('anna');

async function openTwoShops() {
  const shop = await openGoldenShop();
  const db = openDatabase({
    ...{ connection: shop.ledger.env.DATABASE_URL, poolSize: 2, applicationName: 'test', onError: () => undefined },
  });
  onTestFinished(() => db.close());
  const deps: OperationDeps = {
    ...{ db, now: () => at('12:00:00'), random: randomBytes, consoleUrl: null, note: () => undefined },
    config: {
      ...{ keyRing: TEST_KEY_RING, masterKeys: null, databaseUrl: null, dataDir: '/nonexistent', sandbox: false },
      ...{ networks: {}, webhooks: { localTargets: true, retentionDays: 90 } },
    },
    ...{ log: createLogger({ level: 'silent' }), networks: ['devnet'], addressGuard: NO_MANIFEST },
    ...{ publicUrl: () => 'https://pay.example', randomBelow: () => 0 },
    nodes: () => Promise.resolve({ withNodes: () => Promise.reject(new Error('no node')), describeForPayer: () => '' }),
  };
  const run = async (operation: LocalOperation, actor: Actor, given: Given) =>
    operation.view(await perform(operation, deps, actor, operation.read(given as never, deps.now())));
  const added = (await run(enableAdapter, OWNER, {
    ...{ projectId: shop.shop.projectId, kind: 'epay', rate: '1', currency: 'USD' },
  })) as { adapterId: string };
  const waiting = (await run(
    addAddresses,
    { ...OWNER, kind: 'console', id: uuidV7(deps.now(), randomBytes(10)) },
    { projectId: shop.shop.projectId, entries: [{ place: '1', text: addressOf(0xef) }], isChecked: false },
  )) as { proposed: { changeId: string } };
  const { ledger, theirs } = shop;
  const judgeRowsAgain = await letRowsStandAlone(ledger.owner);
  const transfer = await ledger.addTransfer('unmatched', null, {
    ...{ to: theirs, amount: '3', tx: 0x61, block: 1130, time: at('10:16:00'), decidedAt: at('10:17:00') },
  });
  const event = await ledger.addTransferEvent(transfer, at('10:17:00'));
  await judgeRowsAgain();
  const own = { event: encodeId('evt', event.id), transfer: encodeId('trf', transfer.id), address: 0xa4 };
  return { shop, own, run, subjects: subjectsOf(shop, added.adapterId, waiting.proposed.changeId) };
}

/** Returns the subjects for each member that names a thing of a project. */
function subjectsOf({ shop, key, endpoints, paid, strays, requests }: Shop, adapter: string, change: string) {
  const nobodys = (prefix: 'prj' | 'key' | 'whe' | 'evt' | 'trf' | 'req' | 'inv') =>
    encodeId(prefix, uuidV7(at('09:00:00'), new Uint8Array(10).fill(7)));
  const pair = (prefix: Parameters<typeof nobodys>[0], id: string): Subject => [encodeId(prefix, id), nobodys(prefix)];
  const listed = ([theirs, nobodys]: Subject): Subject => [[theirs], [nobodys]];
  const like = (id: string) => `${id.slice(0, 4)}${nobodys('key').slice(4)}`;
  const transfer = pair('trf', strays.short.id);
  const event = pair('evt', paid.event.id);
  const project: Subject = [shop.projectId, nobodys('prj')];
  return {
    ...{ projectId: project, projects: listed(project), keyId: pair('key', key), key: pair('key', key) },
    ...{ endpointId: pair('whe', endpoints.good), endpoint: pair('whe', endpoints.good) },
    ...{ adapterId: [adapter, like(adapter)], changeId: [change, like(change)] },
    ...{ eventId: event, event, events: listed(event), invoice: pair('inv', paid.invoice.id) },
    ...{ invoiceId: pair('inv', paid.invoice.id), address: [addressOf(0xa1), addressOf(0x7f)] },
    ...{ requestId: [requests.made, nobodys('req')], externalId: ['paid', 'nobodys'], text: ['paid', 'nobodys'] },
    ...{ reference: transfer, transferId: transfer, transfers: listed(transfer), entries: [entry(0xa1), entry(0x7f)] },
  } as Readonly<Record<string, Subject>>;
}

/** Returns an answer with the names of the subject removed. */
async function answerOf(asked: Promise<unknown>, subject: unknown): Promise<string> {
  const names = JSON.stringify(subject).match(/[\w-]{4,}/g) ?? [];
  const answer = await asked.then(JSON.stringify, (error: unknown) => {
    if (error instanceof AppError) return JSON.stringify([error.code, error.message, error.problems]);
    return String(error);
  });
  return names.reduce((text, name) => text.replaceAll(name, '…'), answer);
}

const isWide = ({ action }: LocalOperation) => (ACTIONS[action] as Rule).wide === true;
/** Operations that a console or command runs locally, in addition to those with a route. */
const LOCAL: readonly unknown[] = [...invoices.operations, showAddress, listBalances, ...transferExport.operations];
const DECLARED = [...ALL, ...(LOCAL as LocalOperation[])];
const scoped = DECLARED.filter((operation) => !isWide(operation));

/** These take no thing of a project, or aren't declared as operations yet. test/console and test/people test them. */
const ELSEWHERE = [
  ...['deriveAddresses', 'findDerivationKey', 'showDerivation', 'limitDerivation', 'showSettings', 'tailEvents'],
  ...['findSubject', 'showToday', 'invitePerson', 'listPeople', 'changeRole', 'resetPerson', 'removePerson'],
  ...['listSessions', 'endSession', 'listOwnSessions', 'endOwnSession', 'endOtherSessions'],
  ...['listOwnPasskeys', 'addPasskey', 'removePasskey', 'stepUp'],
];

test('every action that is not of the whole installation is tried here, or is known to be tried elsewhere', () => {
  const tried = scoped.map(({ action }): string => action);
  const actions = Object.entries(ACTIONS).flatMap(([name, rule]) => ((rule as Rule).wide === true ? [] : [name]));
  expect(actions.filter((name) => !tried.includes(name)).toSorted()).toEqual(ELSEWHERE.toSorted());
});

test('every member of an operation is known to name a thing of a project, or not to', async () => {
  const { subjects } = await openTwoShops();
  const unknown = scoped.flatMap(({ action, input }) =>
    Object.keys(membersOf(input))
      .filter((name) => !PLAIN.has(name) && !(name in subjects))
      .map((name) => `${action}.${name}`),
  );
  expect(unknown).toEqual([]);
});

test('a thing of another project is answered as one that is not there, by every operation that takes one', async () => {
  const { shop, own, run, subjects } = await openTwoShops();
  const stranger: Actor = { ...OWNER, kind: 'admin', projects: [shop.other.id] };
  const cases = scoped.flatMap((operation) =>
    Object.keys(membersOf(operation.input)).flatMap((name) => {
      const [theirs, nobodys] = subjects[name] ?? [];
      if (theirs === undefined || NEW.includes(`${operation.action}.${name}`)) return [];
      const given = (owned: Own, subject: unknown): Given => ({
        ...besideOf(owned)[operation.action],
        [name]: subject,
      });
      return [{ title: `${operation.action}.${name}`, operation, theirs, nobodys, given }];
    }),
  );
  const told: string[] = [];
  for (const { title, operation, theirs, nobodys, given } of cases) {
    const answer = await answerOf(run(operation, stranger, given(own, theirs)), theirs);
    if (answer !== (await answerOf(run(operation, stranger, given(own, nobodys)), nobodys))) told.push(title);
  }
  expect(told).toEqual(TOLD);
  // An actor who may see all projects gets another answer, which proves that each thing exists and that each operation looks for it.
  const shops = { event: String(subjects['event']?.[0]), transfer: String(subjects['transferId']?.[0]), address: 0xa1 };
  const blind: string[] = [];
  for (const { title, operation, theirs, nobodys, given } of cases) {
    const beside = 'projectId' in membersOf(operation.input) ? { projectId: shop.shop.projectId } : {};
    const owner = (subject: unknown) =>
      answerOf(run(operation, OWNER, { ...beside, ...given(shops, subject) }), subject);
    if ((await owner(nobodys)) === (await owner(theirs))) blind.push(title);
  }
  expect(blind).toEqual([]);
});
