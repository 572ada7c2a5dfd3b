import { createHash } from 'node:crypto';
import { AppError } from '../../domain/errors.ts';
import type { EventType } from '../../domain/event.ts';
import { encodeId, uuidV7 } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import { parseAmount } from '../../domain/money.ts';
import type { Network } from '../../domain/network.ts';
import { boundsAround, isLargeChange, originOf, type RateBounds, readRateSource } from '../../domain/rate.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { KeyRing } from '../../runtime/key-ring.ts';
import { insertApiKey } from '../../store/access/api-keys.ts';
import type { Database, Sql } from '../../store/db/database.ts';
import { lockProject } from '../../store/ledger/projects.ts';
import { type Adapter, changeAdapterRate, listAdapters, type StoredRate } from '../../store/outbox/adapter-orders.ts';
import { planNotification } from '../../store/outbox/notifications.ts';
import { listNotifyChannels } from '../../store/outbox/notify-channels.ts';
import { findWebhookEndpoint, insertWebhookEndpoint } from '../../store/outbox/webhook-endpoints.ts';
import { PID } from '../../webhooks/adapter-signature.ts';
import { askRate } from '../../webhooks/ask-rate.ts';
import { addEndpointSecret } from '../../webhooks/endpoint-secrets.ts';
import { createWebhookSender } from '../../webhooks/send.ts';
import { formatSecret } from '../../webhooks/sign.ts';
import type { Actor } from '../actor.ts';
import { refuseBeyond } from '../authorize.ts';
import { clip } from '../input/clip.ts';
import { formatDuration } from '../input/duration.ts';
import { FieldError } from '../input/field-error.ts';
import { recordActions } from '../record-actions.ts';
import { selectProject } from '../select-project.ts';
import { type KeyDeps, openEncryptionKeys } from '../subjects/master-keys.ts';
import { readWebhookUrl, type UrlRules } from '../webhooks/read-webhook-url.ts';
import type { Confirmation, readAdapter } from './read-adapter.ts';
import { formatRate, viewAdapter } from './view-adapter.ts';
import type { EnabledAdapterView } from './views.ts';

type Random = (size: number) => Uint8Array;
type Deps = KeyDeps & { db: Database; random: Random; config: UrlRules };
type Input = ReturnType<typeof readAdapter> & { projectId: string | undefined };

/**
 * Lets shops order from a project by another system's API, of each kind once; again, it gives the adapter that is there another rate, or another
 * source of it, which is asked at once. A rate stays within its bounds; a large change needs both rates said, and every notification channel hears
 * of it. A secret that was made for it is shown this one time. Errors: `NOT_FOUND`, `INVALID_ARGUMENT`, `CONFLICT`,
 * `CONFIG_INVALID`.
 */
export async function enableAdapter(deps: Deps, actor: Actor, input: Input): Promise<EnabledAdapterView> {
  const { db, now, random } = deps;
  const { kind, currency } = input;
  const project = await selectProject(db, actor, input.projectId);
  const rate = await findRate(deps, project.network, input.rate);
  const made = input.secret === null ? createShopSecret(random) : null;
  const { id, isNew, stored } = await db.transaction(async (tx) => {
    // Whoever enables one at the same time waits, and then finds this one.
    await lockProject(tx, project.id);
    const enabled = (await listAdapters(tx, project.id)).find(
      ({ adapter, revokedAt }) => adapter === kind && revokedAt === null,
    );
    if (enabled !== undefined) {
      return changeRate(tx, { actor, now: now(), random }, { ...input, ...rate }, enabled);
    }
    const stored = { ...rate, ...within(rate.rateMicro, rate.bounds ?? boundsAround(rate.rateMicro)) };
    // Its key neither ends nor has a list of addresses.
    refuseBeyond(actor, { expiresAt: null, allowedCidrs: null });
    const [at, uuid, projectId] = [now(), uuidV7(now(), random(10)), project.id];
    const secret = input.secret ?? made ?? '';
    const keyRing = await openEncryptionKeys({ ...deps, db: tx });
    await storeAdapter(tx, { keyRing, now: at, random }, { kind, currency, ...stored, id: uuid, projectId, secret });
    await recordActions(tx, actor, at, [
      { projectId, action: 'key.created', subject: encodeId('key', uuid), detail: { name: nameOf(kind) } },
      {
        ...{ projectId, action: 'webhook.added', subject: encodeId('whe', uuid) },
        detail: { adapter: kind, currency, rate: describeRate(stored) },
      },
    ]);
    return { id: uuid, isNew: true, stored };
  });
  const { network } = project;
  const view = viewAdapter({ id, projectId: project.id, network, adapter: kind, currency, ...stored }, now());
  return { ...view, pid: PID, secret: isNew ? made : null };
}

/** `bounds`: of a fixed rate that has none of its own, null. */
type WantedRate = Omit<StoredRate, 'rateMinMicro' | 'rateMaxMicro'> & { bounds: RateBounds | null };

/** The fixed rate, or what its source says now: one that says nothing of use is refused. */
async function findRate(
  { now, config: { webhooks } }: Deps,
  network: Network,
  wanted: Input['rate'],
): Promise<WantedRate> {
  if ('rateMicro' in wanted) return { ...wanted, rateSource: null, readMicro: null, readAt: null };
  const example = 'https://rates.example.com/usdt';
  const source = { ...wanted, url: readWebhookUrl(wanted.url, network, { webhooks }, { field: 'rateUrl', example }) };
  const sender = createWebhookSender({ connections: 1 });
  try {
    const asked = await askRate({ sender, now, localTargets: webhooks.localTargets }, network, source);
    // Only the end of the process stops it.
    if (asked === null) throw new Error('the question was stopped');
    if (asked.kind === 'refused')
      throw new FieldError('rateUrl', `gives no rate: ${asked.reason}; nothing was changed`);
    return {
      rateMicro: asked.rateMicro,
      rateSource: JSON.stringify(source),
      readMicro: asked.rateMicro,
      readAt: asked.at,
      bounds: { minMicro: readDecimal(source.min), maxMicro: readDecimal(source.max) },
    };
  } finally {
    await sender.close();
  }
}

function readDecimal(text: string): bigint {
  const read = parseAmount(text);
  if (read.kind === 'ok') return read.amountMicro;
  throw new Error('the bounds of a rate are no decimals');
}

/** The columns of bounds that hold this rate. Errors: `INVALID_ARGUMENT`. */
function within(rateMicro: bigint, { minMicro, maxMicro }: RateBounds) {
  if (rateMicro >= minMicro && rateMicro <= maxMicro) return { rateMinMicro: minMicro, rateMaxMicro: maxMicro };
  throw new FieldError(
    'rate',
    say`is ${formatRate(rateMicro)}, outside the bounds ${formatRate(minMicro)} to ${formatRate(maxMicro)}: check it, and if it is right, give ${{ field: 'rateMin' }} and ${{ field: 'rateMax' }} that hold it and the rate in force`,
  );
}

/** For the record: the fixed rate, or its source. Path and query of a URL may hold a token, so a digest says whether it is another one. */
function describeRate({ rateMicro, rateSource, ...bounds }: StoredRate): string | object {
  if (rateSource === null) {
    return { fixed: formatRate(rateMicro), min: formatRate(bounds.rateMinMicro), max: formatRate(bounds.rateMaxMicro) };
  }
  const { url, maxAgeMs, ...rest } = readRateSource(rateSource);
  const urlDigest = createHash('sha256').update(url).digest('hex').slice(0, 12);
  return { origin: originOf({ url }), urlDigest, ...rest, maxAge: formatDuration(maxAgeMs) };
}

/** 32 letters and digits, as such systems have theirs: 128 random bits. */
function createShopSecret(random: Random): string {
  return Buffer.from(random(16)).toString('hex');
}

/** The events that a shop can be notified of: only BEpusdt knows one for an order whose time is up. */
const TOLD: Readonly<Record<Input['kind'], EventType[]>> = {
  epusdt: ['invoice.paid'],
  bepusdt: ['invoice.paid', 'invoice.expired'],
  epay: ['invoice.paid'],
};

type StoreDeps = { keyRing: KeyRing; now: UnixMs; random: Random };
type NewAdapter = StoredRate & Pick<Input, 'kind' | 'currency'> & { id: string; projectId: string; secret: string };

const nameOf = (kind: string) => `adapter ${kind}`;

/** Stores an adapter (UUIDs) with its secret, sealed, in the caller's transaction. Nobody is recorded for it. */
export async function storeAdapter(
  tx: Sql,
  { keyRing, now, random }: StoreDeps,
  { id, projectId, kind, currency, secret, ...rate }: NewAdapter,
): Promise<void> {
  // Nobody has the key: it says only that invoices may be created through this adapter, for as long as it is not revoked.
  const secretSha256 = createHash('sha256').update(random(32)).digest();
  const name = nameOf(kind);
  await insertApiKey(tx, { id, projectId, name, secretSha256, expiresAt: null, allowedCidrs: null });
  const told = { url: `adapter:${kind}`, description: name, eventTypes: TOLD[kind] };
  await insertWebhookEndpoint(tx, { id, projectId, ...told, ...rate, adapter: kind, currency });
  const stored = formatSecret(Buffer.from(secret, 'latin1'));
  await addEndpointSecret(tx, keyRing, { endpointId: id, secret: stored, now, random });
}

type Wanted = Pick<Input, 'kind' | 'currency' | 'secret' | 'confirmRate'> & WantedRate;

async function changeRate(
  tx: Sql,
  { actor, now, random }: { actor: Actor; now: UnixMs; random: Random },
  { bounds, ...input }: Wanted,
  before: Adapter,
): Promise<{ id: string; isNew: false; stored: StoredRate }> {
  const adapterId = encodeId('whe', before.id);
  if (input.secret !== null || input.currency !== before.currency) {
    throw new AppError(
      'CONFLICT',
      say`the project has ${adapterId} for ${input.kind} already, in ${before.currency}, and only its rate can be changed; for another currency or secret, first run "${{ command: 'adapter disable', args: [adapterId] }}": the shop then needs the new URL`,
    );
  }
  const endpoint = await findWebhookEndpoint(tx, before.id);
  if (endpoint === null) throw new Error(`adapter ${before.id} vanished; endpoints are never deleted`);
  const isSameSource = input.rateSource !== null && input.rateSource === before.rateSource;
  const rateMicro = isSameSource ? before.rateMicro : input.rateMicro;
  // Whoever keeps the rates may have read a newer one meanwhile.
  const isNewer = isSameSource && (before.readAt ?? 0) > (input.readAt ?? 0) && (before.readAt ?? 0) <= now;
  const { readMicro, readAt } = isNewer ? before : input;
  const inForce = { minMicro: before.rateMinMicro, maxMicro: before.rateMaxMicro };
  const stored = {
    ...{ rateMicro, rateSource: input.rateSource, readMicro, readAt },
    ...within(input.rateMicro, bounds ?? inForce),
  };
  const change = judgeChange(before, stored, input.confirmRate);
  await changeAdapterRate(tx, endpoint, stored);
  const result = { id: before.id, isNew: false, stored } as const;
  // The log has an entry of each change of what is set, and what is read is none.
  const isSame = input.rateSource === before.rateSource && rateMicro === before.rateMicro && !change.areBoundsNew;
  if (isSame) return result;
  const detail = { rate: { from: describeRate(before), to: describeRate(stored) } };
  await recordActions(tx, actor, now, [
    { projectId: before.projectId, action: 'webhook.changed', subject: adapterId, detail },
  ]);
  if (change.isLarge) await notifyOfRate(tx, { actor, now, random }, before, stored);
  return result;
}

/** What a read rate may have moved since somebody looked at it: a twentieth. */
const isNear = (said: bigint, actual: bigint, isRead: boolean) => {
  const apart = said > actual ? said - actual : actual - said;
  return isRead ? apart * 20n <= actual : apart === 0n;
};

/**
 * Whether a change is large: of more than a fifth, or to bounds that reach further. Bounds that do not hold the rate in force are refused, so that
 * one change is to twice or half of it at most. Errors: `INVALID_ARGUMENT`.
 */
function judgeChange(before: Adapter, after: StoredRate, confirmed: Confirmation | null) {
  const [old, next] = [before.readMicro ?? before.rateMicro, after.readMicro ?? after.rateMicro];
  const [from, to] = [formatRate(old), formatRate(next)];
  const boundsOf = (rate: StoredRate) => `${formatRate(rate.rateMinMicro)} to ${formatRate(rate.rateMaxMicro)}`;
  const areBoundsNew = boundsOf(before) !== boundsOf(after);
  if (areBoundsNew && (old < after.rateMinMicro || old > after.rateMaxMicro)) {
    throw new FieldError(
      'rateMin',
      say`and ${{ field: 'rateMax' }} do not hold the rate in force, ${from} ${before.currency}: choose bounds that hold it and the new rate; for a larger step change the rate more than once`,
    );
  }
  const isWider = after.rateMinMicro < before.rateMinMicro || after.rateMaxMicro > before.rateMaxMicro;
  const isLarge = isWider || isLargeChange(old, next);
  const isConfirmed =
    confirmed !== null &&
    isNear(confirmed.fromMicro, old, before.rateSource !== null) &&
    isNear(confirmed.toMicro, next, after.rateSource !== null);
  if ((isLarge || confirmed !== null) && !isConfirmed) {
    const given = confirmed === null ? 'is missing' : `is ${clip(confirmed.text)}`;
    const bounds = isWider ? `, and the bounds ${boundsOf(before)} would become ${boundsOf(after)}` : '';
    throw new FieldError(
      'confirmRate',
      `${given}: the rate in force is ${from} ${before.currency} for one USDT and the new one ${to}${bounds}. Nothing was changed. Check both rates, then repeat this with ${from}:${to} here`,
    );
  }
  return { isLarge, areBoundsNew };
}

/** Tells every notification channel, in the transaction of the change. */
async function notifyOfRate(
  tx: Sql,
  { actor, now, random }: { actor: Actor; now: UnixMs; random: Random },
  before: Adapter,
  after: StoredRate,
): Promise<void> {
  const [from, to] = [before, after].map(({ readMicro, rateMicro }) => formatRate(readMicro ?? rateMicro));
  const { currency, network, adapter: kind } = before;
  const [adapterId, projectId] = [encodeId('whe', before.id), encodeId('prj', before.projectId)];
  const about = `rate:${uuidV7(now, random(10))}`;
  const body = `${clip(actor.name)} changed the rate of the adapter ${adapterId} (${kind}, ${projectId}) from ${from} to ${to} ${currency} for one USDT, within ${formatRate(after.rateMinMicro)} to ${formatRate(after.rateMaxMicro)}. New orders are priced at the new rate.\n\nIf nobody should have done this, disable the adapter.`;
  const title = `Adapter rate on ${network}: ${from} to ${to} ${currency}`;
  for (const { id: channelId } of await listNotifyChannels(tx)) {
    const id = uuidV7(now, random(10));
    await planNotification(tx, { id, channelId, about, phase: 'raised', isUrgent: true, title, body, createdAt: now });
  }
}
