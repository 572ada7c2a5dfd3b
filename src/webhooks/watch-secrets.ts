import { encodeId, NIL_UUID } from '../domain/ids.ts';
import { NETWORKS, type Network } from '../domain/network.ts';
import type { Decrypted, KeyRing } from '../runtime/key-ring.ts';
import type { Logger } from '../runtime/log.ts';
import { type Loop, startLoop } from '../runtime/loop.ts';
import type { LoopHealth } from '../runtime/loop-health.ts';
import { findAlarmSubjects } from '../store/chain/alarms.ts';
import { endAlarm, type Finding, tellAlarm } from '../store/chain/tell-alarms.ts';
import type { Database, Sql } from '../store/db/database.ts';
import { findCurrentSecrets } from '../store/outbox/webhook-secrets.ts';
import { openEndpointSecrets } from './endpoint-secrets.ts';

export type SecretWatchDeps = {
  db: Database;
  keyRing: KeyRing;
  log: Logger;
  /** Those that receipts are signed for. */
  networks: readonly Network[];
  /** Whether the key that signs receipts opens; `null`: there is none. */
  tryReceiptKey(): Promise<{ kind: Decrypted['kind']; masterKeyId: string } | null>;
  checkMs?: number;
  loops?: LoopHealth;
};

/** Opening a secret takes microseconds, and its events wait a minute anyway when it does not open. */
const CHECK_MS = 30_000;
/** When more do not open they have one cause. */
const MAX_ALARMS = 100;
const KIND = 'secret-damaged';

/**
 * Opens everything sealed in the database, at once and then each half minute: a secret that was moved, changed or deleted there raises an
 * alarm, and does not only make events wait. The process that raised an alarm closes it, or a process that starts: another process may
 * have keys that the one that raised it lacks.
 */
export function startSecretWatch(deps: SecretWatchDeps): Loop {
  const { db, log, checkMs = CHECK_MS } = deps;
  let raised: Finding[] | null = null;
  return startLoop({
    name: 'watch of sealed secrets',
    log,
    health: deps.loops,
    maxPauseMs: CHECK_MS,
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

/** Endpoints that would be told something and whose current secret does not open, or is not there. */
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
      const detail = `${what} ${describe(kind, secret?.masterKeyId ?? '')}. Its events wait and are not lost. ${REMEDIES[kind]}, or give the endpoint a new secret: quittance webhook rotate ${subject}${kind === 'unknown-key' ? ' --key-is-lost' : ''}`;
      found.push({ network, subject, detail });
    }
    after = page.at(-1)?.endpointId ?? null;
  }
  return found;
}

async function findDamagedReceiptKey({ networks, tryReceiptKey }: SecretWatchDeps): Promise<Finding[]> {
  const tried = await tryReceiptKey();
  if (tried === null || tried.kind === 'ok') return [];
  const detail = `The key that signs receipts ${describe(tried.kind, tried.masterKeyId)}. Receipts are shown without a signature. ${REMEDIES[tried.kind]}, or make a new key: quittance receipt rotate --key-is-lost; receipts that were handed out stay valid`;
  return networks.map((network) => ({ network, subject: 'receipts', detail }));
}

type Kind = Exclude<Decrypted['kind'], 'ok'> | 'missing';

function describe(kind: Kind, masterKeyId: string): string {
  if (kind === 'missing') return 'is not in the database any more';
  if (kind === 'damaged') return 'does not open: what is stored of it was changed, or moved here from another place';
  return `does not open: it says that it is sealed under the master key ${masterKeyId}, which is not here`;
}

const INTRUDER =
  'Nothing of Quittance does that: find out who wrote to the database, and what else. Then restore the row';
const REMEDIES: Readonly<Record<Kind, string>> = {
  missing: INTRUDER,
  damaged: INTRUDER,
  'unknown-key': 'Give this process that key, behind its own ("quittance master-key status")',
};
