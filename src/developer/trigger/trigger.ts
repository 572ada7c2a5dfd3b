import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createPayer } from '@quittance/devnet/payer';
import { assertNever } from '../../core/domain/assert-never.ts';
import { AppError, conflict, invalidArgument } from '../../core/domain/errors.ts';
import { newEvent } from '../../core/domain/event.ts';
import { decodeId, encodeId, NIL_UUID } from '../../core/domain/ids.ts';
import { unixMs } from '../../core/domain/time.ts';
import { systemClock } from '../../core/runtime/clock.ts';
import { asObject, parseObject } from '../../core/runtime/parse-object.ts';
import { requestClaim } from '../../core/store/ledger/checkout.ts';
import { recordEvents } from '../../core/store/outbox/events.ts';
import { listWebhookEndpoints } from '../../core/store/outbox/webhook-endpoints.ts';
import { commandActor } from '../../faces/operator/actor.ts';
import { clip } from '../../faces/operator/input/problems.ts';
import { readCandidates } from '../../faces/operator/input/read-candidates.ts';
import { NO_MANIFEST } from '../../faces/operator/operation.ts';
import { addAddresses, retireAddresses } from '../../faces/operator/subjects/addresses.ts';
import { replayDeliveries } from '../../faces/operator/subjects/delivery-replay.ts';
import { resolveTransfers, refundTransfer as tieRefund } from '../../faces/operator/subjects/transfer-decisions.ts';
import { enableEndpoint } from '../../faces/operator/subjects/webhook-sending.ts';
import { addEndpoint, listEndpoints, updateEndpoint } from '../../faces/operator/subjects/webhooks.ts';
import type { Config } from '../../server/config/config.ts';
import { createFeedReader, type FeedReader, PAGE, pause, readEvent } from '../listen/follow-feed.ts';
import { findPayable, letExpire, orderInvoice, orphanPayment, type Payable } from '../sandbox/find-payable.ts';
import { sendPayment } from '../sandbox/pay-invoice.ts';
import { type Sandbox, withSandbox } from '../sandbox/sandbox-file.ts';
import { TRIGGERS, type Trigger } from './triggers.ts';

/** There is a block at least every minute, and the watcher reads it a moment later. Everything else takes seconds. */
const WAIT_MS = 180_000;

/** Reads which event to trigger. `options` only apply to events about an invoice. Throws `INVALID_ARGUMENT`. */
export function readTrigger(name: string, { amount, externalId }: InvoiceOptions): Trigger {
  const known = Object.keys(TRIGGERS) as Trigger[];
  const type = known.find((each) => each === name);
  if (type === undefined) {
    const choice = `choose ${known.join(', ')}`;
    throw invalidArgument`${clip(name)} is not an event that can be triggered: ${choice}`;
  }
  const isAboutInvoice = type !== 'ping' && type !== 'endpoint.disabled' && type !== 'transfer.refunded';
  if (isAboutInvoice || (amount === undefined && externalId === undefined)) return type;
  throw invalidArgument`--amount and --external-id apply to an invoice, and ${type} has none`;
}

/**
 * Makes an event happen in this data directory's sandbox, and waits until the feed has it. Throws `SANDBOX_NOT_RUNNING` or
 * `SANDBOX_REFUSED`.
 */
export async function trigger(
  { config, note }: { config: Config; note(text: string): void },
  type: Trigger,
  options: InvoiceOptions,
): Promise<FeedEvent> {
  return withSandbox(config.dataDir, async (sandbox) => {
    const signal = AbortSignal.timeout(WAIT_MS);
    const feed = createFeedReader({ server: sandbox.baseUrl, apiKey: sandbox.apiKey }, { note, signal });
    try {
      const until = await followFrom(feed, signal);
      if (type === 'ping') {
        const ping = await recordPings(sandbox);
        return await until((event) => event.id === ping);
      }
      if (type === 'endpoint.disabled') return await disableEndpoint(sandbox, config, until);
      if (type === 'transfer.refunded') return await refundTransfer(sandbox, { until, signal });
      return await happenToInvoice(sandbox, { type, options, until });
    } catch (error) {
      if (!signal.aborted || error !== signal.reason) throw error;
      const message = `${type} did not arrive within ${WAIT_MS / 1000} seconds: "quittance chain status" and the sandbox log may say why`;
      throw new AppError('SANDBOX_REFUSED', message, { cause: error });
    }
  });
}

/** The description identifies this endpoint. Endpoints are never deleted, so one is enough. */
const DESCRIPTION = 'created by "quittance trigger endpoint.disabled"';

const ACTOR = commandActor('trigger');
const now = () => unixMs(systemClock.now());
const depsOf = ({ db }: Sandbox) => ({ db, now, random: randomBytes });

/** This is our own server, so this machine's rules for other endpoints don't apply. */
const LOCAL = { webhooks: { localTargets: true } };

/** Makes its own endpoint respond to a ping with 410, so that the service disables the endpoint. */
async function disableEndpoint(sandbox: Sandbox, config: Config, until: Until): Promise<FeedEvent> {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(410, { connection: 'close' }).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const { port } = server.address() as AddressInfo;
    const endpointId = await prepareEndpoint(sandbox, config, `http://127.0.0.1:${port}/gone`);
    await recordPing(sandbox, decodeId('whe', endpointId) ?? NIL_UUID);
    return await until(({ type, data }) => type === 'endpoint.disabled' && data['endpointId'] === endpointId);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

async function prepareEndpoint(sandbox: Sandbox, config: Config, url: string): Promise<string> {
  const { projectId } = sandbox;
  const deps = { ...depsOf(sandbox), note: () => undefined };
  const { data } = await listEndpoints.run(deps, ACTOR, { projectId });
  const known = data.find(({ description }) => description === DESCRIPTION);
  if (known !== undefined) {
    const { endpointId } = known;
    await updateEndpoint.run({ ...deps, config: LOCAL }, ACTOR, { endpointId, url });
    await enableEndpoint.run(deps, ACTOR, { endpointId });
    return endpointId;
  }
  const wanted = addEndpoint.read({ projectId, url, events: ['ping'], description: DESCRIPTION }, now());
  return (await addEndpoint.run({ ...deps, config: { ...config, databaseUrl: null, ...LOCAL } }, ACTOR, wanted))
    .endpointId;
}

/**
 * Records a ping for each of the demo project's endpoints that subscribe to pings. Returns the id of the first, `evt_…`. Throws
 * `SANDBOX_REFUSED`.
 */
async function recordPings(sandbox: Sandbox): Promise<string> {
  const { db, projectUuid } = sandbox;
  const taking = (await listWebhookEndpoints(db, projectUuid)).filter(
    ({ disabledAt, eventTypes }) => disabledAt === null && (eventTypes?.includes('ping') ?? true),
  );
  const [first, ...others] = taking;
  if (first === undefined) {
    throw new AppError(
      'SANDBOX_REFUSED',
      'no demo project endpoint accepts pings: add one with "quittance webhook add"',
    );
  }
  const ping = await recordPing(sandbox, first.id);
  for (const { id } of others) await recordPing(sandbox, id);
  return ping;
}

/** Records a ping for one endpoint (a UUID), and returns its id. */
async function recordPing({ db, projectUuid: projectId }: Sandbox, endpointId: string): Promise<string> {
  const at = now();
  const data = { endpointId: encodeId('whe', endpointId) };
  const draft = { type: 'ping', projectId, invoiceId: null, transferId: null, sequence: 1, data } as const;
  const ping = newEvent(draft, { timestamp: at, random: randomBytes });
  await db.transaction(async (tx) => {
    await recordEvents(tx, 'devnet', [ping], at);
    await replayDeliveries(tx, { endpointId, eventIds: [ping.id], now: at });
  });
  return encodeId('evt', ping.id);
}

const AMOUNT_MICRO = 1_000_000n;
/** This is enough for the energy that a transfer needs. */
const FEE_SUN = 100_000_000n;
/** How often to check whether the ledger has the outgoing transfer yet. */
const POLL_MS = 200;

/** Sends money to an address of its own, sends it back from there, and links the two transfers. */
async function refundTransfer(sandbox: Sandbox, { until, signal }: { until: Until; signal: AbortSignal }) {
  const { usdtContract: contract } = sandbox;
  const payer = createPayer({ nodeUrl: sandbox.nodeUrl, privateKey: sandbox.payer.privateKey });
  // Addresses are never deleted, so one is enough: the payer's key always gives the same one.
  const own = payer.withKey(createHash('sha256').update(`refund ${sandbox.payer.privateKey}`).digest('hex'));
  await adopt(sandbox, own.address);
  await payer.sendTrx({ to: own.address, amountSun: FEE_SUN });
  const came = await payer.transfer({ contract, to: own.address, amountMicro: AMOUNT_MICRO });
  const { data } = await until((event) => event.type === 'transfer.unmatched' && event.data['txId'] === came);
  const transferId = decodeId('trf', String(data['transferId']));
  if (transferId === null) throw new Error('the event does not name a transfer');
  const txId = await own.transfer({ contract, to: payer.address, amountMicro: AMOUNT_MICRO });
  // The transfer is on the chain before it's in the ledger.
  while (!(await isTied(sandbox, { transferId, txId, note: '', invoice: null }))) await pause(POLL_MS, signal);
  return until((event) => event.type === 'transfer.refunded' && event.data['txId'] === came);
}

async function isTied(sandbox: Sandbox, wanted: Parameters<typeof tieRefund.run>[2]): Promise<boolean> {
  return tieRefund.run(depsOf(sandbox), ACTOR, wanted).then(
    () => true,
    (error: unknown) => isConflict(error) && false,
  );
}

/** Adds an address that doesn't get invoices, but is watched. */
async function adopt(sandbox: Sandbox, address: string): Promise<void> {
  const { projectId } = sandbox;
  const deps = depsOf(sandbox);
  const adding = { ...deps, config: { sandbox: true, networks: {} }, addressGuard: NO_MANIFEST };
  const entries = [{ text: address, place: 'the address' }];
  await addAddresses
    .run(adding, ACTOR, { projectId, entries, policy: undefined, isFresh: true, isChecked: false })
    .catch(isConflict);
  const { good: addresses } = readCandidates(entries, []);
  await retireAddresses.run(deps, ACTOR, { projectId, addresses, note: null });
}

/** Rethrows any other error. */
function isConflict(error: unknown): true {
  if (error instanceof AppError && error.code === 'CONFLICT') return true;
  throw error;
}

/** The fields for creating the invoice, if they matter. */
export type InvoiceOptions = { amount?: string | undefined; externalId?: string | undefined };

type InvoiceTrigger = Exclude<Trigger, 'ping' | 'endpoint.disabled' | 'transfer.refunded'>;

/** Creates an invoice in the demo project and makes the event happen to it. Throws `INVALID_ARGUMENT` or `SANDBOX_REFUSED`. */
async function happenToInvoice(
  sandbox: Sandbox,
  { type, options, until }: { type: InvoiceTrigger; options: InvoiceOptions; until: Until },
): Promise<FeedEvent> {
  const { amount = '25.00', externalId = `trigger-${type}-${systemClock.now()}` } = options;
  const create = (name: string) => makeInvoice(sandbox, { amount, externalId: name });
  if (type === 'invoice.pending' || type === 'invoice.confirming') {
    return whileConfirming(create, externalId, async ({ id, invoice }) => {
      if (type === 'invoice.pending') {
        const { txIds } = await sendPayment(sandbox, 'orphaned', invoice, null);
        const { wasConfirming } = await orphanPayment(sandbox, invoice, txIds[0] ?? '');
        return wasConfirming ? until(isAbout(type, 'invoiceId', [id])) : null;
      }
      await sendPayment(sandbox, 'exact', invoice, null);
      const isConfirming = isAbout(type, 'invoiceId', [id]);
      const isPaid = isAbout('invoice.paid', 'invoiceId', [id]);
      const event = await until((each) => isConfirming(each) || isPaid(each));
      return isConfirming(event) ? event : null;
    });
  }
  const { id, invoice } = await create(externalId);
  switch (type) {
    case 'invoice.paid':
      await sendPayment(sandbox, 'exact', invoice, null);
      return until(isAbout(type, 'invoiceId', [id]));
    case 'invoice.expired':
      await letExpire(sandbox.db, invoice);
      return until(isAbout(type, 'invoiceId', [id]));
    case 'transfer.unmatched':
    case 'transfer.duplicate': {
      const { txIds } = await sendPayment(sandbox, type === 'transfer.unmatched' ? 'short' : 'twice', invoice, null);
      return until(isAbout(type, 'txId', txIds));
    }
    case 'transfer.claimed': {
      const { txIds } = await sendPayment(sandbox, 'short', invoice, null);
      for (const txId of txIds) await requestClaim(sandbox.db, invoice.checkoutToken, txId);
      return until(isAbout(type, 'txId', txIds));
    }
    case 'transfer.resolved': {
      const { txIds } = await sendPayment(sandbox, 'short', invoice, null);
      const { data } = await until(isAbout('transfer.unmatched', 'txId', txIds));
      const wanted = { transfers: [String(data['transferId'])], resolution: 'fulfilled-manually', invoice: id };
      await resolveTransfers.run(depsOf(sandbox), ACTOR, resolveTransfers.read(wanted, now()));
      return until(isAbout(type, 'txId', txIds));
    }
    default:
      return assertNever(type);
  }
}

function isAbout(type: string, field: 'invoiceId' | 'txId', values: readonly string[]): (event: FeedEvent) => boolean {
  return (event) => event.type === type && values.some((value) => event.data[field] === value);
}

type Created = { id: string; invoice: Payable };

async function makeInvoice(sandbox: Sandbox, wanted: Parameters<typeof orderInvoice>[1]): Promise<Created> {
  const { status, invoiceId, detail = status } = await orderInvoice(sandbox, wanted);
  // A conflict also returns an id, but it's the existing invoice's.
  if (status === 201 && invoiceId !== undefined)
    return { id: invoiceId, invoice: await findPayable(sandbox, invoiceId) };
  if (status === 409) throw conflict`the invoice was refused: ${detail}`;
  if (status === 400) throw invalidArgument`the invoice was refused: ${detail}`;
  throw new AppError('SANDBOX_REFUSED', `the invoice could not be created: ${detail}`);
}

/** On a fast network, blocks may become irreversible before their payment is seen. */
const MAX_TRIES = 5;

/** Creates invoices until `pay` returns the event for an invoice that was seen CONFIRMING. It returns `null` for an invoice that wasn't. */
async function whileConfirming(
  create: (externalId: string) => Promise<Created>,
  externalId: string,
  pay: (created: Created) => Promise<FeedEvent | null>,
): Promise<FeedEvent> {
  for (let tries = 1; tries <= MAX_TRIES; tries += 1) {
    const event = await pay(await create(tries === 1 ? externalId : `${externalId}-${tries}`));
    if (event !== null) return event;
  }
  throw new AppError(
    'SANDBOX_REFUSED',
    `no payment was seen CONFIRMING before its block became irreversible, in ${MAX_TRIES} tries: is the machine very busy?`,
  );
}

/** An event from the feed: its bytes as text, and its parsed content. */
type FeedEvent = { id: string; type: string; data: Record<string, unknown>; body: string };

/** Waits for a matching event in the feed. */
type Until = (isIt: (event: FeedEvent) => boolean) => Promise<FeedEvent>;

const FEED_POLL_MS = 100;

/** Returns a function that waits for a matching event. It checks each event from now on exactly once. */
async function followFrom(feed: FeedReader, signal: AbortSignal): Promise<Until> {
  let { latest: cursor } = await feed.read(null, 1);
  return async (isIt) => {
    for (;;) {
      const page = await feed.read(cursor, PAGE);
      for (const bytes of page.events) {
        const event = toEvent(bytes);
        cursor = event.id;
        if (isIt(event)) return event;
      }
      if (!page.hasMore) await pause(FEED_POLL_MS, signal);
    }
  };
}

function toEvent(bytes: Uint8Array): FeedEvent {
  const event = readEvent(bytes);
  if (event === null) throw new AppError('SANDBOX_REFUSED', 'the sandbox feed contains something that is not an event');
  const body = Buffer.from(bytes).toString();
  return { id: event.id, type: event.type, data: asObject(parseObject(body)['data']), body };
}
