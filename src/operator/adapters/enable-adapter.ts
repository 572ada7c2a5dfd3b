import { createHash } from 'node:crypto';
import { AppError } from '../../domain/errors.ts';
import { encodeId, uuidV7 } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import { formatAmount, microUsdt } from '../../domain/money.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { KeyRing } from '../../runtime/key-ring.ts';
import { insertApiKey } from '../../store/access/api-keys.ts';
import type { Database, Sql } from '../../store/db/database.ts';
import { lockProject } from '../../store/ledger/projects.ts';
import { changeAdapterRate, listAdapters } from '../../store/outbox/adapter-orders.ts';
import { findWebhookEndpoint, insertWebhookEndpoint } from '../../store/outbox/webhook-endpoints.ts';
import { asNumber, PID } from '../../webhooks/adapter-signature.ts';
import { addEndpointSecret } from '../../webhooks/endpoint-secrets.ts';
import { formatSecret } from '../../webhooks/sign.ts';
import type { Actor } from '../actor.ts';
import { type KeyDeps, openEncryptionKeys } from '../keys/encryption-keys.ts';
import { selectProject } from '../projects/select-project.ts';
import { recordActions } from '../record-actions.ts';
import type { readAdapter } from './read-adapter.ts';
import type { EnabledAdapterView } from './views.ts';

type Random = (size: number) => Uint8Array;
type Deps = KeyDeps & { db: Database; random: Random };
type Input = ReturnType<typeof readAdapter> & { projectId: string | undefined };

/**
 * Lets shops order from a project by another system's API, of each kind once; again, it gives the adapter that is there another rate. A secret that
 * was made for it is shown this one time. Errors: `NOT_FOUND`, `CONFLICT`, `CONFIG_INVALID`.
 */
export async function enableAdapter(deps: Deps, actor: Actor, input: Input): Promise<EnabledAdapterView> {
  const { db, now, random } = deps;
  const project = await selectProject(db, actor, input.projectId);
  const made = input.secret === null ? createShopSecret(random) : null;
  const { id, isNew } = await db.transaction(async (tx) => {
    // Whoever enables one at the same time waits, and then finds this one.
    await lockProject(tx, project.id);
    const enabled = (await listAdapters(tx, project.id)).find(
      ({ adapter, revokedAt }) => adapter === input.kind && revokedAt === null,
    );
    if (enabled !== undefined) {
      await changeRate(tx, { actor, now: now() }, input, enabled);
      return { id: enabled.id, isNew: false };
    }
    const [at, uuid, projectId] = [now(), uuidV7(now(), random(10)), project.id];
    const secret = input.secret ?? made ?? '';
    const keyRing = await openEncryptionKeys({ ...deps, db: tx });
    await storeAdapter(tx, { keyRing, now: at, random }, { ...input, id: uuid, projectId, secret });
    const detail = { adapter: input.kind, currency: input.currency, rate: formatRate(input.rateMicro) };
    await recordActions(tx, actor, at, [
      { projectId, action: 'key.created', subject: encodeId('key', uuid), detail: { name: nameOf(input.kind) } },
      { projectId, action: 'webhook.added', subject: encodeId('whe', uuid), detail },
    ]);
    return { id: uuid, isNew: true };
  });
  return {
    ...{ adapterId: encodeId('whe', id), projectId: encodeId('prj', project.id), network: project.network },
    ...{ kind: input.kind, currency: input.currency, rate: formatRate(input.rateMicro), path: pathOf(id), pid: PID },
    secret: isNew ? made : null,
  };
}

/** `7.2` */
export function formatRate(rateMicro: bigint): string {
  return asNumber(formatAmount(microUsdt(rateMicro)));
}

export function pathOf(id: string): string {
  return `/adapters/${encodeId('whe', id)}`;
}

/** 32 letters and digits, as such systems have theirs: 128 random bits. */
function createShopSecret(random: Random): string {
  return Buffer.from(random(16)).toString('hex');
}

/** What an adapter is told of. */
const TOLD = ['invoice.paid'];

type StoreDeps = { keyRing: KeyRing; now: UnixMs; random: Random };
type NewAdapter = Omit<Input, 'secret' | 'projectId'> & { id: string; projectId: string; secret: string };

const nameOf = (kind: string) => `adapter ${kind}`;

/** Stores an adapter (UUIDs) with its secret, sealed, in the caller's transaction. Nobody is recorded for it. */
export async function storeAdapter(
  tx: Sql,
  { keyRing, now, random }: StoreDeps,
  { id, projectId, kind, currency, rateMicro, secret }: NewAdapter,
): Promise<void> {
  // Nobody has the key: it says only that invoices may be created through this adapter, for as long as it is not revoked.
  const secretSha256 = createHash('sha256').update(random(32)).digest();
  const name = nameOf(kind);
  await insertApiKey(tx, { id, projectId, name, secretSha256, expiresAt: null, allowedCidrs: null });
  const told = { url: `adapter:${kind}`, description: name, eventTypes: TOLD };
  await insertWebhookEndpoint(tx, { id, projectId, ...told, adapter: kind, currency, rateMicro });
  const stored = formatSecret(Buffer.from(secret, 'latin1'));
  await addEndpointSecret(tx, keyRing, { endpointId: id, secret: stored, now, random });
}

async function changeRate(
  tx: Sql,
  { actor, now }: { actor: Actor; now: UnixMs },
  input: Input,
  { id, currency, rateMicro }: { id: string; currency: string; rateMicro: bigint },
): Promise<void> {
  const adapterId = encodeId('whe', id);
  if (input.secret !== null || input.currency !== currency) {
    throw new AppError(
      'CONFLICT',
      say`the project has ${adapterId} for ${input.kind} already, in ${currency}, and only its rate can be changed; for another currency or secret, first run "${{ command: 'adapter disable', args: [adapterId] }}": the shop then needs the new URL`,
    );
  }
  if (rateMicro === input.rateMicro) return;
  const endpoint = await findWebhookEndpoint(tx, id);
  if (endpoint === null) throw new Error(`adapter ${id} vanished; endpoints are never deleted`);
  await changeAdapterRate(tx, endpoint, input.rateMicro);
  const detail = { rate: { from: formatRate(rateMicro), to: formatRate(input.rateMicro) } };
  await recordActions(tx, actor, now, [
    { projectId: endpoint.projectId, action: 'webhook.changed', subject: adapterId, detail },
  ]);
}
