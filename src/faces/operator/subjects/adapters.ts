import { createHash } from 'node:crypto';
import { conflict, notFound } from '../../../core/domain/errors.ts';
import type { EventType } from '../../../core/domain/event.ts';
import { encodeId, uuidV7 } from '../../../core/domain/ids.ts';
import { say } from '../../../core/domain/message.ts';
import { formatAmount, type MicroUsdt, microUsdt, parseAmount } from '../../../core/domain/money.ts';
import type { Network } from '../../../core/domain/network.ts';
import {
  boundsAround,
  isCurrentRate,
  isLargeChange,
  originOf,
  type RateBounds,
  type RateSource,
  readRateSource,
} from '../../../core/domain/price.ts';
import { toIso, type UnixMs } from '../../../core/domain/time.ts';
import type { KeyRing } from '../../../core/runtime/key-ring.ts';
import { Type } from '../../../core/runtime/type.ts';
import type { Database, Sql } from '../../../core/store/db/database.ts';
import { lockProject } from '../../../core/store/ledger/projects.ts';
import {
  ADAPTER_KINDS,
  type Adapter,
  type AdapterKind,
  changeAdapterRate,
  findAdapters,
  type StoredRate,
} from '../../../core/store/outbox/adapter-orders.ts';
import { planNotification } from '../../../core/store/outbox/notifications.ts';
import { listNotifyChannels } from '../../../core/store/outbox/notify-channels.ts';
import { findWebhookEndpoint, insertWebhookEndpoint } from '../../../core/store/outbox/webhook-endpoints.ts';
import { asNumber, PID } from '../../../core/webhooks/adapter-dialect.ts';
import { addEndpointSecret } from '../../../core/webhooks/endpoint-secrets.ts';
import { askRate } from '../../../core/webhooks/poll-rates.ts';
import { createWebhookSender } from '../../../core/webhooks/send.ts';
import { formatSecret } from '../../../core/webhooks/sign.ts';
import type { Actor } from '../actor.ts';
import { refuseBeyond } from '../authorize.ts';
import { columnsText, fieldsText } from '../command-words.ts';
import { type KeyDeps, openEncryptionKeys } from '../encryption-keys.ts';
import { choice, id, listOf, maybe, of, part, type Shown, schemaOf, show, text, time, whole, yes } from '../fields.ts';
import { clip, FieldError } from '../input/problems.ts';
import { formatDuration, parseDuration } from '../input/readers.ts';
import { operation } from '../operation.ts';
import { argument, line, needed, projectId, secret } from '../option.ts';
import { recordAction, recordActions } from '../record-actions.ts';
import { selectProject } from '../select.ts';
import { insertApiKey, revokeKey } from './keys.ts';
import { readWebhookUrl, selectEndpoint, type UrlRules } from './webhooks.ts';

/** Shops can't order through a rate for prices, so it has no path. */
function pathOf({ id, adapter }: Pick<Adapter, 'id' | 'adapter'>): string | null {
  return adapter === 'price' ? null : `/adapters/${encodeId('whe', id)}`;
}

function callbacksDisabledAtOf({ adapter, disabledAt }: Pick<Adapter, 'adapter' | 'disabledAt'>): string | null {
  return adapter === 'price' || disabledAt === null ? null : toIso(disabledAt);
}

/** Writes a rate such as `7.2`. */
function formatRate(rateMicro: bigint): string {
  return asNumber(formatAmount(microUsdt(rateMicro)));
}

const rate = { ...text, show: formatRate };
/** The source of a rate, the time of the rate, and whether the rate is too old for an order. */
const source = {
  ...{ origin: text, url: text, path: text, timePath: maybe(text), min: text, max: text, maxAge: text },
  ...{ at: time, ageSeconds: whole, isTooOld: yes },
};
/**
 * `rate` is the price of one USDT in `currency`; it stays within `rateMin` and `rateMax`. `rateSource` is `null` for a fixed rate. `path`
 * is the adapter's URL path, relative to the service; a rate for prices has none.
 */
const adapterFields = {
  ...{
    adapterId: of('id', id('whe')),
    projectId: id('prj'),
    network: text,
    kind: of('adapter', choice(ADAPTER_KINDS)),
  },
  currency: text,
  rate: { ...text, of: '*', show: (row: StoredRate) => formatRate(row.readMicro ?? row.rateMicro) },
  ...{ rateMin: of('rateMinMicro', rate), rateMax: of('rateMaxMicro', rate), rateSource: maybe(part(source)) },
  path: { ...maybe(text), of: '*', show: pathOf },
};
/**
 * While `callbacksDisabledAt` is set, the adapter refuses orders until `webhook enable`. A rate for prices has no callbacks, so it's used
 * until `adapter disable`.
 */
const listed = {
  ...{ ...adapterFields, createdAt: time, disabledAt: of('revokedAt', maybe(time)) },
  callbacksDisabledAt: { ...maybe(time), of: '*', show: callbacksDisabledAtOf },
};
export type AdapterView = Shown<typeof listed>;
/** `secret` is a generated secret, shown only once. A rate for prices has neither. */
const enabled = { ...adapterFields, pid: maybe(text), secret: maybe(text) };

function sourceOf({ rateSource, readAt }: StoredRate, now: UnixMs) {
  if (rateSource === null || readAt === null) return null;
  const source = readRateSource(rateSource);
  return {
    ...{ ...source, origin: originOf(source), maxAge: formatDuration(source.maxAgeMs), at: readAt },
    ...{ ageSeconds: Math.floor((now - readAt) / 1000), isTooOld: !isCurrentRate(readAt, source, now) },
  };
}

type Random = (size: number) => Uint8Array;
type EnableDeps = KeyDeps & { db: Database; random: Random; config: UrlRules };

/**
 * Lets shops order from a project through another system's API, with one adapter of each kind. If the adapter already exists, changes its
 * rate or its rate source. A new source is queried at once. A rate stays within its bounds. A large change must name the old and the new
 * rate, and every notification channel is notified. A generated secret is shown only once. Throws `NOT_FOUND`, `INVALID_ARGUMENT`,
 * `CONFLICT` or `CONFIG_INVALID`.
 */
export const enableAdapter = operation({
  action: 'enableAdapter',
  summary:
    'Let shops create orders through another system’s API, and show the secret once. For an existing adapter, change the rate or its source',
  route: 'POST /adapters',
  command: 'adapter enable',
  does: "let shops create orders through another system's API, and show the secret once; run the command again to change the rate or its source",
  output: schemaOf(enabled),
  input: Type.Object({
    projectId: projectId(),
    kind: needed('<kind>', 'epusdt (and its successor, gmpay), bepusdt or epay; or price, for prices over the API'),
    rate: line('<price>', 'fixed price of one USDT in the shop currency, such as 7.2; or use the options below'),
    rateUrl: line('<url>', 'URL to poll for the rate; must return JSON'),
    ratePath: line('<pointer>', 'JSON pointer to the rate, such as /tether/cny'),
    rateTimePath: line('<pointer>', 'JSON pointer to the time of the rate, if the response contains a time'),
    rateMin: line('<price>', 'lower limit for the rate (default: 0.7 times a fixed rate)'),
    rateMax: line('<price>', 'upper limit for the rate (default: 1.4 times a fixed rate)'),
    confirmRate: line(
      '<old:new>',
      'old and new rate, such as 7.2:9; required if the rate changes by more than 20 % or the bounds become wider',
    ),
    rateMaxAge: line('<duration>', 'reject orders while the rate is older than this: 1m to 7d (default: 30m)'),
    currency: line('<code>', 'shop currency (default: CNY; required for prices)'),
    secret: secret('<text>', 'secret to share with the shop, 24 to 64 characters; "-" reads it from standard input'),
  }),
  read: ({ projectId, kind: given, currency: named, confirmRate, secret, ...rate }) => {
    const kind = ADAPTER_KINDS.find((each) => each === given);
    if (kind === undefined)
      throw new FieldError('kind', `is ${clip(given)}: choose one of ${ADAPTER_KINDS.join(', ')}`);
    if (kind === 'price' && named === undefined)
      throw new FieldError('currency', 'is missing: use the currency of the prices, such as EUR');
    const currency = (named ?? 'CNY').toUpperCase();
    if (!/^[A-Z]{3,5}$/.test(currency))
      throw new FieldError('currency', `is ${clip(currency)}: use a code such as CNY`);
    if (kind === 'price' && secret !== undefined)
      throw new FieldError('secret', 'does not apply to prices: leave it out');
    return {
      ...{ projectId, kind, currency, rate: readRateOrSource(rate) },
      ...{ confirmRate: readConfirmation(confirmRate), secret: readShopSecret(secret) },
    };
  },
  run: async (deps: EnableDeps, actor, input) => {
    const { db, now, random } = deps;
    const { kind, currency } = input;
    const project = await selectProject(db, actor, input.projectId);
    const rate = await findRate(deps, project.network, input.rate);
    const made = input.secret === null ? createShopSecret(random) : null;
    const { id, isNew, stored } = await db.transaction(async (tx) => {
      // Concurrent requests wait here, and then find the adapter that this one creates.
      await lockProject(tx, project.id);
      const before = (await findAdapters(tx, project.id)).find(
        (each) => each.adapter === kind && each.revokedAt === null && (kind !== 'price' || each.currency === currency),
      );
      if (before !== undefined) {
        return changeRate(tx, { actor, now: now(), random }, { ...input, ...rate }, before);
      }
      const stored = { ...rate, ...within(rate.rateMicro, rate.bounds ?? boundsAround(rate.rateMicro)) };
      // The adapter's key neither expires nor is limited to certain addresses.
      refuseBeyond(actor, { expiresAt: null, allowedCidrs: null });
      const [at, uuid, projectId] = [now(), uuidV7(now(), random(10)), project.id];
      const secret = input.secret ?? made ?? '';
      const keyRing = await openEncryptionKeys({ ...deps, db: tx });
      await storeAdapter(tx, { keyRing, now: at, random }, { kind, currency, ...stored, id: uuid, projectId, secret });
      const detail = { adapter: kind, currency, rate: describeRate(stored) };
      await recordActions(tx, actor, at, [
        { projectId, action: 'key.created', subject: encodeId('key', uuid), detail: { name: nameOf(kind, currency) } },
        { projectId, action: 'webhook.added', subject: encodeId('whe', uuid), detail },
      ]);
      return { id: uuid, isNew: true, stored };
    });
    const row = { id, projectId: project.id, network: project.network, adapter: kind, currency, ...stored };
    return show(enabled, {
      ...row,
      rateSource: sourceOf(stored, now()),
      pid: kind === 'price' ? null : PID,
      secret: isNew && kind !== 'price' ? made : null,
    });
  },
  print: (adapter) => ({
    text: fieldsText(adapter, [
      ['adapter', 'adapterId'],
      ['project', 'projectId'],
      ['network', 'network'],
      ['kind', 'kind'],
      ['rate', ({ rate, currency }) => `${rate} ${currency} for 1 USDT`],
      ['bounds', ({ rateMin, rateMax }) => `${rateMin} to ${rateMax}`],
      ['read from', ({ rateSource: from }) => from && `${from.url} ${from.path}, ${ageOf(from)}`],
      ['oldest', ({ rateSource }) => rateSource?.maxAge ?? null],
      ['path', 'path'],
      ['pid', 'pid'],
      ['secret', ({ kind, secret }) => (kind === 'price' ? null : (secret ?? 'unchanged, not shown'))],
    ]),
    next:
      adapter.kind === 'price'
        ? `invoices in this project can now have a price in ${adapter.currency} instead of an amount: see docs/reference/api.md`
        : [
            adapter.secret !== null && 'copy the secret now, because it is not shown again',
            `in the shop, set the gateway URL to the public URL of this service followed by ${adapter.path}: see docs/guides/adapters.md`,
          ],
  }),
});

function ageOf({ ageSeconds, isTooOld }: Shown<typeof source>): string {
  const age = ageSeconds < 120 ? `${ageSeconds} s` : formatDuration(Math.floor(ageSeconds / 60) * 60_000);
  return `${age} old${isTooOld ? ', which is too old: orders are rejected' : ''}`;
}

type Named = { kind: AdapterKind; currency: string };

/** A fixed rate in millionths. `bounds` is null if none were given. */
type FixedRate = { rateMicro: bigint; bounds: RateBounds | null };

type RateField = 'rate' | 'rateUrl' | 'ratePath' | 'rateTimePath' | 'rateMin' | 'rateMax' | 'rateMaxAge';
type GivenRate = { [Field in RateField]?: string | undefined };

/** The current and the new rate, as the person believes them to be. */
type Confirmation = { text: string; fromMicro: bigint; toMicro: bigint };

function readConfirmation(text: string | undefined): Confirmation | null {
  if (text === undefined) return null;
  const [from, to, ...others] = text.split(':').map(parseAmount);
  if (from?.kind === 'ok' && to?.kind === 'ok' && others.length === 0)
    return { text, fromMicro: from.amountMicro, toMicro: to.amountMicro };
  throw new FieldError(
    'confirmRate',
    `is ${clip(text)}: use the current rate, a colon and the new rate, such as 7.2:9`,
  );
}

function readRateOrSource(input: GivenRate): FixedRate | RateSource {
  const { rate, rateUrl, ratePath = '', rateTimePath, rateMin = '', rateMax = '', rateMaxAge = '30m' } = input;
  if ((rate === undefined) === (rateUrl === undefined)) {
    throw new FieldError('rate', say`: use either a fixed rate, such as 7.2, or ${{ field: 'rateUrl' }}`);
  }
  if (rateUrl === undefined) {
    const others = Object.entries(input).find(
      ([name, value]) => /^rate(Path|TimePath|MaxAge)$/.test(name) && value !== undefined,
    );
    if (others !== undefined)
      throw new FieldError(others[0], say`applies only with ${{ field: 'rateUrl' }}: leave it out`);
    const rateMicro = readPrice('rate', rate ?? '', 'the price of one USDT, such as 7.2');
    if (input.rateMin === undefined && input.rateMax === undefined) return { rateMicro, bounds: null };
    return { rateMicro, bounds: readBounds(rateMin, rateMax, 1n) };
  }
  readBounds(rateMin, rateMax, LEAST_RATE);
  const maxAgeMs = parseDuration(rateMaxAge) ?? 0;
  if (maxAgeMs < MAX_AGE.least || maxAgeMs > MAX_AGE.most) {
    throw new FieldError('rateMaxAge', `is ${clip(rateMaxAge)}: use a duration from 1m to 7d, such as 30m`);
  }
  const timePath = rateTimePath === undefined ? null : readPointer('rateTimePath', rateTimePath);
  const path = readPointer('ratePath', ratePath);
  return { url: rateUrl, path, timePath, min: rateMin, max: rateMax, maxAgeMs };
}

function readBounds(rateMin: string, rateMax: string, leastMicro: bigint): RateBounds {
  const minMicro = readPrice('rateMin', rateMin, 'the lowest price per USDT that you accept, such as 6.5');
  const maxMicro = readPrice('rateMax', rateMax, 'the highest price per USDT that you accept, such as 8');
  if (minMicro < leastMicro) {
    throw new FieldError(
      'rateMin',
      `is ${clip(rateMin)}: use 0.01 or more, because rates are stored with six decimals`,
    );
  }
  if (maxMicro > 2n * minMicro) {
    throw new FieldError(
      'rateMax',
      say`is ${clip(rateMax)}, more than twice ${{ field: 'rateMin' }}: choose bounds that are close, such as 6.8 and 7.6, because they protect you from a wrong rate`,
    );
  }
  if (minMicro > maxMicro) throw new FieldError('rateMax', say`is ${clip(rateMax)}, less than ${{ field: 'rateMin' }}`);
  return { minMicro, maxMicro };
}

/** The lowest rate is 0.01, so cutting off further digits changes a rate by at most a ten-thousandth. */
const LEAST_RATE = 10_000n;
const MAX_AGE = { least: 60_000, most: 7 * 86_400_000 };

function readPrice(field: string, text: string, what: string): MicroUsdt {
  const price = parseAmount(text);
  if (price.kind === 'ok') return price.amountMicro;
  throw new FieldError(field, `${text === '' ? 'is missing' : price.reason}: use ${what}`);
}

function readPointer(field: string, text: string): string {
  if (text.length <= 200 && /^(\/([^~/\p{C}]|~[01])+)+$/u.test(text)) return text;
  throw new FieldError(
    field,
    `is ${clip(text)}: use a JSON pointer of at most 200 characters into the response, such as /tether/cny for {"tether":{"cny":7.19}}`,
  );
}

/** Allows every character that stored secrets, shops and URLs all support. */
const SECRET = /^[A-Za-z0-9_-]{24,64}$/;

function readShopSecret(secret: string | undefined): string | null {
  if (secret === undefined || SECRET.test(secret)) return secret ?? null;
  throw new FieldError(
    'secret',
    `(${secret.length} characters, not shown) must have 24 to 64 letters, digits, "_" or "-": leave it out to generate a secret`,
  );
}

/** `bounds` is `null` for a fixed rate without its own bounds. */
type WantedRate = Omit<StoredRate, 'rateMinMicro' | 'rateMaxMicro'> & { bounds: RateBounds | null };

/** Returns the fixed rate, or reads the current rate from its source. A source without a usable rate is refused. */
async function findRate({ now, config: { webhooks } }: EnableDeps, network: Network, wanted: FixedRate | RateSource) {
  if ('rateMicro' in wanted) return { ...wanted, rateSource: null, readMicro: null, readAt: null };
  const example = 'https://rates.example.com/usdt';
  const source = { ...wanted, url: readWebhookUrl(wanted.url, network, { webhooks }, { field: 'rateUrl', example }) };
  const sender = createWebhookSender({ connections: 1 });
  try {
    const asked = await askRate({ sender, now, localTargets: webhooks.localTargets }, network, source);
    // Only shutting down the process cancels the request.
    if (asked === null) throw new Error('the request was cancelled');
    if (asked.kind === 'refused')
      throw new FieldError('rateUrl', `returned no rate: ${asked.reason}; nothing was changed`);
    return {
      rateMicro: asked.rateMicro,
      rateSource: JSON.stringify(source),
      readMicro: asked.rateMicro,
      readAt: asked.at,
      bounds: readBounds(source.min, source.max, LEAST_RATE),
    };
  } finally {
    await sender.close();
  }
}

/** Returns the columns for bounds that contain this rate. Throws `INVALID_ARGUMENT`. */
function within(rateMicro: bigint, { minMicro, maxMicro }: RateBounds) {
  if (rateMicro >= minMicro && rateMicro <= maxMicro) return { rateMinMicro: minMicro, rateMaxMicro: maxMicro };
  throw new FieldError(
    'rate',
    say`is ${formatRate(rateMicro)}, outside the bounds ${formatRate(minMicro)} to ${formatRate(maxMicro)}: check the rate and, if it is right, change ${{ field: 'rateMin' }} and ${{ field: 'rateMax' }} to include both this rate and the current rate`,
  );
}

/**
 * Describes the fixed rate or its source for the record. A URL's path and query may hold a token, so a digest shows whether the URL
 * changed.
 */
function describeRate({ rateMicro, rateSource, ...bounds }: StoredRate): string | object {
  if (rateSource === null) {
    return { fixed: formatRate(rateMicro), min: formatRate(bounds.rateMinMicro), max: formatRate(bounds.rateMaxMicro) };
  }
  const { url, maxAgeMs, ...rest } = readRateSource(rateSource);
  const urlDigest = createHash('sha256').update(url).digest('hex').slice(0, 12);
  return { origin: originOf({ url }), urlDigest, ...rest, maxAge: formatDuration(maxAgeMs) };
}

/** Creates a secret of 128 random bits as 32 letters and digits, the usual form in such systems. */
function createShopSecret(random: Random): string {
  return Buffer.from(random(16)).toString('hex');
}

/**
 * Returns the events of which a system can be notified. Only BEpusdt has one for an expired order. Nothing is sent for a price, because it
 * has no orders.
 */
const eventTypesOf = (kind: AdapterKind): EventType[] =>
  kind === 'bepusdt' ? ['invoice.paid', 'invoice.expired'] : ['invoice.paid'];

type StoreDeps = { keyRing: KeyRing; now: UnixMs; random: Random };
type NewAdapter = StoredRate & Named & { id: string; projectId: string; secret: string };

const nameOf = (kind: AdapterKind, currency: string) =>
  kind === 'price' ? `prices in ${currency}` : `adapter ${kind}`;

/** Stores an adapter with its encrypted secret, in the caller's transaction. All ids are UUIDs. Doesn't write the audit log. */
export async function storeAdapter(
  tx: Sql,
  { keyRing, now, random }: StoreDeps,
  { id, projectId, kind, currency, secret, ...rate }: NewAdapter,
): Promise<void> {
  // No one has this key. It only says that invoices may be created through this adapter until it's revoked.
  const secretSha256 = createHash('sha256').update(random(32)).digest();
  const name = nameOf(kind, currency);
  await insertApiKey(tx, { id, projectId, name, secretSha256, expiresAt: null, allowedCidrs: null });
  const told = { url: `adapter:${kind}`, description: name, eventTypes: eventTypesOf(kind) };
  await insertWebhookEndpoint(tx, { id, projectId, ...told, ...rate, adapter: kind, currency });
  const stored = formatSecret(Buffer.from(secret, 'latin1'));
  await addEndpointSecret(tx, keyRing, { endpointId: id, secret: stored, now, random });
}

type Change = WantedRate & Named & { secret: string | null; confirmRate: Confirmation | null };

async function changeRate(
  tx: Sql,
  { actor, now, random }: { actor: Actor; now: UnixMs; random: Random },
  { bounds, ...input }: Change,
  before: Adapter,
): Promise<{ id: string; isNew: false; stored: StoredRate }> {
  const adapterId = encodeId('whe', before.id);
  if (input.secret !== null || input.currency !== before.currency)
    throw conflict`the project already has the adapter ${adapterId} for ${input.kind}, in ${before.currency}; you can change only its rate. To use another currency or secret, first run "${{ command: 'adapter disable', args: [adapterId] }}". The shop then needs the new URL`;
  const endpoint = await findWebhookEndpoint(tx, before.id);
  if (endpoint === null) throw new Error(`adapter ${before.id} disappeared, although endpoints are never deleted`);
  const isSameSource = input.rateSource !== null && input.rateSource === before.rateSource;
  const rateMicro = isSameSource ? before.rateMicro : input.rateMicro;
  // The rate poller may have read a newer rate in the meantime.
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
  // The log records every change of a setting, but not the rates that were read.
  const isSame = input.rateSource === before.rateSource && rateMicro === before.rateMicro && !change.areBoundsNew;
  if (isSame) return result;
  const detail = { rate: { from: describeRate(before), to: describeRate(stored) } };
  await recordAction(tx, actor, now, 'webhook.changed', { projectId: before.projectId, subject: adapterId, detail });
  if (change.isLarge) await notifyOfRate(tx, { actor, now, random }, before, stored);
  return result;
}

/** A rate from a source may have changed by up to a twentieth since the person saw it. */
const isNear = (said: bigint, actual: bigint, isRead: boolean) => {
  const apart = said > actual ? said - actual : actual - said;
  return isRead ? apart * 20n <= actual : apart === 0n;
};

/**
 * Whether a change is large: it changes the rate by more than a fifth, or widens the bounds. Refuses bounds that don't contain the current
 * rate, so a single change can at most double or halve the rate. Throws `INVALID_ARGUMENT`.
 */
function judgeChange(before: Adapter, after: StoredRate, confirmed: Confirmation | null) {
  const [old, next] = [before.readMicro ?? before.rateMicro, after.readMicro ?? after.rateMicro];
  const [from, to] = [formatRate(old), formatRate(next)];
  const boundsOf = (rate: StoredRate) => `${formatRate(rate.rateMinMicro)} to ${formatRate(rate.rateMaxMicro)}`;
  const areBoundsNew = boundsOf(before) !== boundsOf(after);
  if (areBoundsNew && (old < after.rateMinMicro || old > after.rateMaxMicro)) {
    throw new FieldError(
      'rateMin',
      say`and ${{ field: 'rateMax' }} do not include the current rate, ${from} ${before.currency}: choose bounds that include both it and the new rate; for a larger step, change the rate more than once`,
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
      `${given}: the current rate is ${from} ${before.currency} for one USDT, and the new rate is ${to}${bounds}. Nothing was changed. Check both rates, then enter ${from}:${to} here`,
    );
  }
  return { isLarge, areBoundsNew };
}

/** Notifies every channel, in the same transaction as the change. */
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
  const body = `${clip(actor.name)} changed the rate of the adapter ${adapterId} (${kind}, ${projectId}) from ${from} to ${to} ${currency} for one USDT, within ${formatRate(after.rateMinMicro)} to ${formatRate(after.rateMaxMicro)}. New orders use the new rate.\n\nIf this change was not authorised, disable the adapter.`;
  const title = `Adapter rate on ${network}: ${from} to ${to} ${currency}`;
  for (const { id: channelId } of await listNotifyChannels(tx)) {
    const id = uuidV7(now, random(10));
    await planNotification(tx, { id, channelId, about, phase: 'raised', isUrgent: true, title, body, createdAt: now });
  }
}

/** Lists a project's adapters, including disabled ones. */
export const listAdapters = operation({
  action: 'listAdapters',
  summary: "List a project's adapters, for shops that use another system’s API",
  route: 'GET /adapters',
  command: 'adapter list',
  does: 'list adapters, without their secrets',
  output: listOf(listed),
  input: Type.Object({ projectId: projectId() }),
  run: async ({ db, now }: { db: Sql; now(): UnixMs }, actor, { projectId }) => {
    const project = await selectProject(db, actor, projectId);
    const found = await findAdapters(db, project.id);
    return { data: found.map((each) => show(listed, { ...each, rateSource: sourceOf(each, now()) })) };
  },
  print: ({ data }) => ({
    text: columnsText(data, [
      ['ADAPTER', 'adapterId'],
      ['KIND', 'kind'],
      ['RATE', ({ rate, currency }) => `${rate} ${currency}`],
      ['FROM', ({ rateSource: from }) => (from === null ? 'fixed' : `${from.origin}, ${ageOf(from)}`)],
      ['CREATED', 'createdAt'],
      [
        'DISABLED',
        ({ disabledAt, callbacksDisabledAt: off }) => disabledAt ?? (off === null ? 'no' : `callbacks since ${off}`),
      ],
      ['PATH', 'path', 'none'],
    ]),
    next:
      data.length === 0 &&
      say`no adapter yet: add an adapter with "${{ command: 'adapter enable', input: { kind: '…', rate: '…' } }}"`,
  }),
});

export const disableAdapter = operation({
  action: 'disableAdapter',
  summary: 'Permanently stop an adapter from accepting orders',
  route: 'POST /adapters/:adapterId/disable',
  command: 'adapter disable',
  does: 'permanently stop an adapter from accepting orders; Quittance still reports payments for its earlier orders',
  output: schemaOf({ adapterId: text }),
  input: Type.Object({ adapterId: argument('<adapter>', 'whe_…', 'whe_…') }),
  run: async (deps: { db: Database; now(): UnixMs }, actor, { adapterId }) => {
    const { id, adapter } = await selectEndpoint(deps.db, actor, adapterId);
    if (adapter === null)
      throw notFound`${adapterId} is an endpoint, not an adapter: list the adapters with "${{ command: 'adapter list' }}"`;
    await revokeKey.run(deps, actor, { uuid: id });
    return { adapterId: encodeId('whe', id) };
  },
  print: ({ adapterId }) => ({ text: `disabled ${adapterId}` }),
});

export const operations = [enableAdapter, listAdapters, disableAdapter];
