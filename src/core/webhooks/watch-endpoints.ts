import { configInvalid } from '../domain/errors.ts';
import { encodeId, NIL_UUID } from '../domain/ids.ts';
import { NETWORKS, type Network } from '../domain/network.ts';
import { toIso, type UnixMs, unixMs } from '../domain/time.ts';
import { parseUrl } from '../domain/url.ts';
import type { Decrypted, KeyRing, KeySource } from '../runtime/key-ring.ts';
import type { Logger } from '../runtime/log.ts';
import { type Loop, type LoopHealth, startLoop } from '../runtime/loop.ts';
import { endAlarm, type Finding, findAlarmSubjects, settleAlarms, tellAlarm } from '../store/chain/alarms.ts';
import type { Database, Sql } from '../store/db/database.ts';
import { findLongFailingCallbacks, findLongFailingEndpoints } from '../store/outbox/webhook-endpoints.ts';
import {
  clearPlainSecret,
  findCurrentSecrets,
  findSecretsUnderOtherKeys,
  lockPlainSecrets,
  stopEncryption,
} from '../store/outbox/webhook-secrets.ts';
import { openEndpointSecrets, storeEndpointSecret } from './endpoint-secrets.ts';
import { parseSecret } from './sign.ts';

type Deps = { db: Database; now(): UnixMs; log: Logger; checkMs?: number; loops?: LoopHealth };

/** Within this time, most receivers have restarted or been repaired. */
const FAILING_MS = 15 * 60_000;
/** Within this time, an operator has sent a callback again, or told the shop in another way. */
const GIVEN_UP_MS = 7 * 86_400_000;
const CHECK_MS = 15_000;

/**
 * Raises an alarm for each endpoint whose attempts have all failed for 15 minutes, and closes the alarm after the first delivery. Does the
 * same for each adapter with a paid order whose callback has been failing for that long, until the adapter has no such orders. Callbacks
 * that were given up in the last seven days have an alarm of their own, so that the adapter's next outage is a new alarm. Any number of
 * processes may run this.
 */
export function startReceiverWatch({ db, now, log, loops, checkMs = CHECK_MS }: Deps): Loop {
  return startLoop({
    name: 'watch of receivers',
    log,
    health: loops,
    maxPauseMs: CHECK_MS,
    run: async () => {
      const failing = await findFailing(db, now());
      await settleAlarms({ db, log }, 'webhook-failing', failing, { isOnce: true });
      return checkMs;
    },
  });
}

async function findFailing(db: Database, now: UnixMs) {
  const before = unixMs(Math.max(0, now - FAILING_MS));
  const endpoints = await findLongFailingEndpoints(db, before);
  const callbacks = await findLongFailingCallbacks(db, before, unixMs(Math.max(0, now - GIVEN_UP_MS)));
  return [
    ...endpoints.map(({ id, network, url, failingSince }) => {
      const subject = encodeId('whe', id);
      // The URL's path and query may contain a token, so only its origin is used.
      const origin = parseUrl(url)?.origin ?? 'invalid URL';
      const detail = `Every attempt to the webhook endpoint ${subject} (${origin}) has failed since ${toIso(failingSince)}. Its events are waiting. To find out why, run: quittance webhook test ${subject}`;
      return { subject, network, detail };
    }),
    ...callbacks.map(({ endpointId, network, isGivenUp, count, eventId, failingSince, firstAt, error }) => {
      const subject = encodeId('whe', endpointId);
      const orders = count === 1 ? 'One paid order' : `${count} paid orders`;
      if (isGivenUp) {
        const detail = `${orders} for adapter ${subject} could not be reported to the shop, and Quittance has given up: the last attempt for the first order ended with ${error}. Repair the shop, then run: quittance deliveries replay --endpoint ${subject} --from ${toIso(firstAt)} --status dead --type invoice.paid`;
        return { subject: `${subject} given up`, network, detail };
      }
      const detail = `${orders} for adapter ${subject} could not be reported to the shop: callbacks have failed for more than 15 minutes. Callbacks for other orders continue. The first order has waited since ${toIso(failingSince)}, and its last attempt ended with ${error}. To see every attempt, run: quittance deliveries show ${encodeId('evt', eventId)}`;
      return { subject, network, detail };
    }),
  ];
}

type SecretWatchDeps = {
  db: Database;
  keyRing: KeyRing;
  log: Logger;
  /** The networks that receipts are signed for. */
  networks: readonly Network[];
  /** Returns whether the receipt signing key can be decrypted, or `null` if there's none. */
  tryReceiptKey(): Promise<{ kind: Decrypted['kind']; masterKeyId: string } | null>;
  checkMs?: number;
  loops?: LoopHealth;
};

/** It takes only microseconds to decrypt a secret. If that fails, the endpoint's events wait for a minute in any case. */
const WATCH_SECRETS_CHECK_MS = 30_000;
/** If more fail, they probably have a common cause. */
const MAX_ALARMS = 100;
const KIND = 'secret-damaged';

/**
 * Decrypts every secret in the database, immediately and then every half minute. If a secret was moved, changed or deleted, this raises an
 * alarm, because otherwise its endpoint's events would just wait. An alarm is closed by the process that raised it, or by a process that is
 * starting. Other processes don't close it, because they may have different keys.
 */
export function startSecretWatch(deps: SecretWatchDeps): Loop {
  const { db, log, checkMs = WATCH_SECRETS_CHECK_MS } = deps;
  let raised: Finding[] | null = null;
  return startLoop({
    name: 'watch of sealed secrets',
    log,
    health: deps.loops,
    maxPauseMs: WATCH_SECRETS_CHECK_MS,
    run: async () => {
      const found = [...(await findDamagedSecrets(deps)), ...(await findDamagedReceiptKey(deps))].slice(0, MAX_ALARMS);
      raised ??= await findRaised(db);
      for (const each of found) await tellAlarm(deps, KIND, each);
      for (const { network, subject } of raised.filter((former) => !found.some((now) => isSame(now, former)))) {
        await endAlarm(deps, KIND, network, subject);
      }
      raised = found;
      return checkMs;
    },
  });
}

function isSame(one: Finding, two: Finding): boolean {
  return one.network === two.network && one.subject === two.subject;
}

async function findRaised(db: Database): Promise<Finding[]> {
  const found: Finding[] = [];
  for (const network of NETWORKS) {
    const subjects = await findAlarmSubjects(db, network, KIND);
    found.push(...subjects.map((subject) => ({ network, subject, detail: '' })));
  }
  return found;
}

/** Returns endpoints that have deliveries, but whose current secret is missing or can't be decrypted. */
export async function findDamagedSecrets({ db, keyRing }: { db: Sql; keyRing: KeyRing }): Promise<Finding[]> {
  const found: Finding[] = [];
  for (let after: string | null = NIL_UUID; after !== null && found.length < MAX_ALARMS; ) {
    const page = await findCurrentSecrets(db, after);
    const stored = page.flatMap(({ secret }) => secret ?? []);
    const opened = await openEndpointSecrets(keyRing, stored);
    const kinds = new Map(stored.map((secret, index) => [secret, opened[index]?.kind ?? 'damaged']));
    for (const { endpointId, projectId, network, secret } of page) {
      const kind = secret === null ? 'missing' : (kinds.get(secret) ?? 'damaged');
      if (kind === 'ok') continue;
      const subject = encodeId('whe', endpointId);
      const what = `The secret of webhook endpoint ${subject} of ${encodeId('prj', projectId)}`;
      const detail = `${what} ${describe(kind, secret?.masterKeyId ?? '')}. Quittance keeps the endpoint's events. ${REMEDIES[kind]}, or give the endpoint a new secret: quittance webhook rotate ${subject}${kind === 'unknown-key' ? ' --key-is-lost' : ''}`;
      found.push({ network, subject, detail });
    }
    after = page.at(-1)?.endpointId ?? null;
  }
  return found;
}

async function findDamagedReceiptKey({ networks, tryReceiptKey }: SecretWatchDeps): Promise<Finding[]> {
  const tried = await tryReceiptKey();
  if (tried === null || tried.kind === 'ok') return [];
  const detail = `The key that signs receipts ${describe(tried.kind, tried.masterKeyId)}. Receipts are shown without a signature. ${REMEDIES[tried.kind]}, or create a new key: quittance receipt rotate --key-is-lost; issued receipts stay valid`;
  return networks.map((network) => ({ network, subject: 'receipts', detail }));
}

type Kind = Exclude<Decrypted['kind'], 'ok'> | 'missing';

function describe(kind: Kind, masterKeyId: string): string {
  if (kind === 'missing') return 'is no longer in the database';
  if (kind === 'damaged') return 'cannot be decrypted: its stored value was changed, or copied here from another row';
  return `cannot be decrypted: it is encrypted with the master key ${masterKeyId}, which is not configured here`;
}

const INTRUDER =
  'Quittance did not do this: find out who wrote to the database, and what else was changed. Then restore the row';
const REMEDIES: Readonly<Record<Kind, string>> = {
  missing: INTRUDER,
  damaged: INTRUDER,
  'unknown-key': 'Add that key to this process, after its own key ("quittance master-key status")',
};

/** Before anything is signed, checks that this process has the keys for the signing secrets. If not, throws `CONFIG_INVALID`. */
export async function refuseMissingKeys({ db, keyRing }: { db: Sql; keyRing: KeyRing }, now: UnixMs): Promise<void> {
  const missing = await describeMissingSecrets({ db, keyRing }, now);
  if (missing !== null) throw configInvalid`${missing}; nothing is started`;
}

/**
 * Describes the signing secrets that can't be decrypted with these keys, or without any keys, and how to fix this. Returns `null` if all
 * can be decrypted.
 */
export async function describeMissingSecrets(
  { db, keyRing }: { db: Sql; keyRing: KeyRing | null },
  now: UnixMs,
): Promise<string | null> {
  const has = keyRing?.keys().map(({ id }) => id) ?? [];
  const rows = await findSecretsUnderOtherKeys(db, has, now);
  if (rows.length === 0) return null;
  const list = (all: string[]) => [...new Set(all)].slice(0, MAX_SHOWN).join(', ');
  const keys = list(rows.map((row) => row.masterKeyId));
  const endpoints = list(rows.map((row) => encodeId('whe', row.endpointId)));
  const source = keyRing === null ? 'no key is configured' : `${describeSource(keyRing.source)} has ${has.join(', ')}`;
  return (
    `webhook secrets cannot be decrypted here (${rows.length}; endpoints: ${endpoints}): the master key ${keys} is missing, and ${source}. ` +
    `${REFUSE_MISSING_KEYS_REMEDIES[keyRing?.source.kind ?? 'none']} If a key is permanently lost, "quittance webhook rotate whe_… --key-is-lost" gives each of these endpoints a new secret`
  );
}

/** If there are more than a few, they have the same cause. */
const MAX_SHOWN = 5;

function describeSource(source: KeySource): string {
  return source.kind === 'file' ? `the file ${source.path}` : 'QUITTANCE_MASTER_KEY';
}

const REFUSE_MISSING_KEYS_REMEDIES = {
  file: 'Add the lines from the earlier master-key file, from a backup.',
  setting: 'Add the missing key to QUITTANCE_MASTER_KEY, after a comma.',
  none: 'Set QUITTANCE_MASTER_KEY, or, with an embedded database, restore the file master-key from a backup.',
} as const;

type EncryptPlainSecretsDeps = {
  /** This is called only if there's something to encrypt, because the key may have to be created. */
  keyRing(): Promise<KeyRing>;
  log: Pick<Logger, 'info' | 'error'>;
  now(): UnixMs;
  random(size: number): Uint8Array;
};

/**
 * Encrypts the secrets that an earlier release stored as plain text, in the transaction that creates the table for encrypted secrets during
 * an upgrade. Plain secrets are never accepted at any other time.
 */
export async function encryptPlainSecrets(
  tx: Sql,
  { keyRing, log, now, random }: EncryptPlainSecretsDeps,
): Promise<void> {
  let count = 0;
  for (;;) {
    const batch = await lockPlainSecrets(tx);
    if (batch.length === 0) break;
    const ring = await keyRing();
    await stopEncryption(tx);
    await ring.reload();
    for (const { endpointId, secret } of batch) {
      const endpoint = encodeId('whe', endpointId);
      if (isSecret(secret)) await storeEndpointSecret(tx, ring, { endpointId, secret, now: now(), random });
      else
        log.error(
          { endpoint },
          'a webhook endpoint has a malformed secret, which never signed anything; rotate the secret',
        );
      await clearPlainSecret(tx, endpointId);
    }
    count += batch.length;
  }
  if (count > 0)
    log.info({ endpoints: count }, 'webhook secrets that an earlier release stored as plain text are now encrypted');
}

function isSecret(text: string): boolean {
  try {
    parseSecret(text);
    return true;
  } catch {
    return false;
  }
}
