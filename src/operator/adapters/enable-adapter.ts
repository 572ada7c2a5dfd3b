import { createHash } from 'node:crypto';
import { AppError } from '../../domain/errors.ts';
import type { EventType } from '../../domain/event.ts';
import { encodeId, uuidV7 } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import type { Network } from '../../domain/network.ts';
import { originOf, readRateSource } from '../../domain/rate.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { KeyRing } from '../../runtime/key-ring.ts';
import { insertApiKey } from '../../store/access/api-keys.ts';
import type { Database, Sql } from '../../store/db/database.ts';
import { lockProject } from '../../store/ledger/projects.ts';
import { type Adapter, changeAdapterRate, listAdapters, type StoredRate } from '../../store/outbox/adapter-orders.ts';
import { findWebhookEndpoint, insertWebhookEndpoint } from '../../store/outbox/webhook-endpoints.ts';
import { PID } from '../../webhooks/adapter-signature.ts';
import { askRate } from '../../webhooks/ask-rate.ts';
import { addEndpointSecret } from '../../webhooks/endpoint-secrets.ts';
import { createWebhookSender } from '../../webhooks/send.ts';
import { formatSecret } from '../../webhooks/sign.ts';
import type { Actor } from '../actor.ts';
import { refuseBeyond } from '../authorize.ts';
import { formatDuration } from '../input/duration.ts';
import { FieldError } from '../input/field-error.ts';
import { type KeyDeps, openEncryptionKeys } from '../keys/encryption-keys.ts';
import { selectProject } from '../projects/select-project.ts';
import { recordActions } from '../record-actions.ts';
import { readWebhookUrl, type UrlRules } from '../webhooks/read-webhook-url.ts';
import type { readAdapter } from './read-adapter.ts';
import { formatRate, viewAdapter } from './view-adapter.ts';
import type { EnabledAdapterView } from './views.ts';

type Random = (size: number) => Uint8Array;
type Deps = KeyDeps & { db: Database; random: Random; config: UrlRules };
type Input = ReturnType<typeof readAdapter> & { projectId: string | undefined };

/**
 * Lets shops order from a project by another system's API, of each kind once; again, it gives the adapter that is there another rate, or another
 * source of it, which is asked at once. A secret that was made for it is shown this one time. Errors: `NOT_FOUND`, `INVALID_ARGUMENT`, `CONFLICT`,
 * `CONFIG_INVALID`.
 */
export async function enableAdapter(deps: Deps, actor: Actor, input: Input): Promise<EnabledAdapterView> {
  const { db, now, random } = deps;
  const { kind, currency } = input;
  const project = await selectProject(db, actor, input.projectId);
  const rate = await findRate(deps, project.network, input.rate);
  const made = input.secret === null ? createShopSecret(random) : null;
  const { id, isNew } = await db.transaction(async (tx) => {
    // Whoever enables one at the same time waits, and then finds this one.
    await lockProject(tx, project.id);
    const enabled = (await listAdapters(tx, project.id)).find(
      ({ adapter, revokedAt }) => adapter === kind && revokedAt === null,
    );
    if (enabled !== undefined) {
      await changeRate(tx, { actor, now: now() }, { ...input, ...rate }, enabled);
      return { id: enabled.id, isNew: false };
    }
    // Its key neither ends nor has a list of addresses.
    refuseBeyond(actor, { expiresAt: null, allowedCidrs: null });
    const [at, uuid, projectId] = [now(), uuidV7(now(), random(10)), project.id];
    const secret = input.secret ?? made ?? '';
    const keyRing = await openEncryptionKeys({ ...deps, db: tx });
    await storeAdapter(tx, { keyRing, now: at, random }, { kind, currency, ...rate, id: uuid, projectId, secret });
    await recordActions(tx, actor, at, [
      { projectId, action: 'key.created', subject: encodeId('key', uuid), detail: { name: nameOf(kind) } },
      {
        ...{ projectId, action: 'webhook.added', subject: encodeId('whe', uuid) },
        detail: { adapter: kind, currency, rate: describeRate(rate) },
      },
    ]);
    return { id: uuid, isNew: true };
  });
  const { network } = project;
  const view = viewAdapter({ id, projectId: project.id, network, adapter: kind, currency, ...rate }, now());
  return { ...view, pid: PID, secret: isNew ? made : null };
}

/** The fixed rate, or what its source says now: one that says nothing of use is refused. */
async function findRate(
  { now, config: { webhooks } }: Deps,
  network: Network,
  wanted: Input['rate'],
): Promise<StoredRate> {
  if (typeof wanted === 'bigint') return { rateMicro: wanted, rateSource: null, readMicro: null, readAt: null };
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
    };
  } finally {
    await sender.close();
  }
}

/** For the record: the fixed rate, or its source. Path and query of a URL may hold a token, so a digest says whether it is another one. */
function describeRate({ rateMicro, rateSource }: StoredRate): string | object {
  if (rateSource === null) return formatRate(rateMicro);
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

async function changeRate(
  tx: Sql,
  { actor, now }: { actor: Actor; now: UnixMs },
  input: Pick<Input, 'kind' | 'currency' | 'secret'> & StoredRate,
  before: Adapter,
): Promise<void> {
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
  await changeAdapterRate(tx, endpoint, { ...input, rateMicro, readMicro, readAt });
  // The log has an entry of each change of what is set, and what is read is none.
  if (input.rateSource === before.rateSource && rateMicro === before.rateMicro) return;
  const detail = { rate: { from: describeRate(before), to: describeRate(input) } };
  await recordActions(tx, actor, now, [
    { projectId: before.projectId, action: 'webhook.changed', subject: adapterId, detail },
  ]);
}
