import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createPayer } from '@quittance/devnet/payer';
import { AppError } from '../../core/domain/errors.ts';
import { newEvent } from '../../core/domain/event.ts';
import { decodeId, encodeId, NIL_UUID } from '../../core/domain/ids.ts';
import { unixMs } from '../../core/domain/time.ts';
import { systemClock } from '../../core/runtime/clock.ts';
import { recordEvents } from '../../core/store/outbox/events.ts';
import { listWebhookEndpoints } from '../../core/store/outbox/webhook-endpoints.ts';
import { commandActor } from '../../faces/operator/actor.ts';
import { clip } from '../../faces/operator/input/problems.ts';
import { readCandidates } from '../../faces/operator/input/read-candidates.ts';
import { NO_MANIFEST } from '../../faces/operator/operation.ts';
import { addAddresses, retireAddresses } from '../../faces/operator/subjects/addresses.ts';
import { replayDeliveries } from '../../faces/operator/subjects/delivery-replay.ts';
import { refundTransfer as tieRefund } from '../../faces/operator/subjects/transfer-decisions.ts';
import { enableEndpoint } from '../../faces/operator/subjects/webhook-sending.ts';
import { addEndpoint, listEndpoints, updateEndpoint } from '../../faces/operator/subjects/webhooks.ts';
import type { Config } from '../../server/config/config.ts';
import { createFeedReader, type FeedEvent, followFrom, pause, type Until } from '../listen/follow-feed.ts';
import { type Sandbox, withSandbox } from '../sandbox/with-sandbox.ts';
import { happenToInvoice, type InvoiceOptions } from './happen-to-invoice.ts';
import { TRIGGERS, type Trigger } from './triggers.ts';

/** There is a block at least every minute, and the watcher reads it a moment later. Everything else takes seconds. */
const WAIT_MS = 180_000;

/** Reads which event to trigger. `options` only apply to events about an invoice. Throws `INVALID_ARGUMENT`. */
export function readTrigger(name: string, { amount, externalId }: InvoiceOptions): Trigger {
  const known = Object.keys(TRIGGERS) as Trigger[];
  const type = known.find((each) => each === name);
  if (type === undefined) {
    const choice = `choose ${known.join(', ')}`;
    throw new AppError('INVALID_ARGUMENT', `${clip(name)} is not an event that can be triggered: ${choice}`);
  }
  const isAboutInvoice = type !== 'ping' && type !== 'endpoint.disabled' && type !== 'transfer.refunded';
  if (isAboutInvoice || (amount === undefined && externalId === undefined)) return type;
  throw new AppError('INVALID_ARGUMENT', `--amount and --external-id apply to an invoice, and ${type} has none`);
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

async function prepareEndpoint({ db, projectId }: Sandbox, config: Config, url: string): Promise<string> {
  const now = () => unixMs(systemClock.now());
  const { data } = await listEndpoints.run({ db, now }, ACTOR, { projectId });
  const known = data.find(({ description }) => description === DESCRIPTION);
  if (known !== undefined) {
    const { endpointId } = known;
    await updateEndpoint.run({ db, now, config: LOCAL }, ACTOR, { endpointId, url });
    await enableEndpoint.run({ db, now }, ACTOR, { endpointId });
    return endpointId;
  }
  const deps = { db, now, random: randomBytes, note: () => undefined };
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
  const now = unixMs(systemClock.now());
  const data = { endpointId: encodeId('whe', endpointId) };
  const draft = { type: 'ping', projectId, invoiceId: null, transferId: null, sequence: 1, data } as const;
  const ping = newEvent(draft, { timestamp: now, random: randomBytes });
  await db.transaction(async (tx) => {
    await recordEvents(tx, 'devnet', [ping], now);
    await replayDeliveries(tx, { endpointId, eventIds: [ping.id], now });
  });
  return encodeId('evt', ping.id);
}

const AMOUNT_MICRO = 1_000_000n;
/** This is enough for the energy that a transfer needs. */
const FEE_SUN = 100_000_000n;
/** How often to check whether the ledger has the outgoing transfer yet. */
const POLL_MS = 200;

/** Sends money to an address of its own, sends it back from there, and links the two transfers. */
async function refundTransfer(
  sandbox: Sandbox,
  { until, signal }: { until: Until; signal: AbortSignal },
): Promise<FeedEvent> {
  const { db, usdtContract: contract } = sandbox;
  const deps = { db, now: () => unixMs(systemClock.now()), random: randomBytes };
  const payer = createPayer({ nodeUrl: sandbox.nodeUrl, privateKey: sandbox.payer.privateKey });
  // Addresses are never deleted, so one is enough: the payer's key always gives the same one.
  const own = payer.withKey(createHash('sha256').update(`refund ${sandbox.payer.privateKey}`).digest('hex'));
  await adopt(deps, sandbox, own.address);
  await payer.sendTrx({ to: own.address, amountSun: FEE_SUN });
  const came = await payer.transfer({ contract, to: own.address, amountMicro: AMOUNT_MICRO });
  const { data } = await until((event) => event.type === 'transfer.unmatched' && event.data['txId'] === came);
  const transferId = decodeId('trf', String(data['transferId']));
  if (transferId === null) throw new Error('the event does not name a transfer');
  const txId = await own.transfer({ contract, to: payer.address, amountMicro: AMOUNT_MICRO });
  // The transfer is on the chain before it's in the ledger.
  while (!(await isTied(deps, { transferId, txId, note: '', invoice: null }))) await pause(POLL_MS, signal);
  return until((event) => event.type === 'transfer.refunded' && event.data['txId'] === came);
}

async function isTied(...[deps, wanted]: [Parameters<typeof tieRefund.run>[0], Parameters<typeof tieRefund.run>[2]]) {
  return tieRefund.run(deps, ACTOR, wanted).then(
    () => true,
    (error: unknown) => isConflict(error) && false,
  );
}

/** Adds an address that doesn't get invoices, but is watched. */
async function adopt(
  deps: Parameters<typeof tieRefund.run>[0],
  { projectId }: Sandbox,
  address: string,
): Promise<void> {
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
