import { AppError } from '../../domain/errors.ts';
import { encodeId } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import type { Policy } from '../../domain/policy.ts';
import type { UnixMs } from '../../domain/time.ts';
import { AUTO_DERIVE_LIMIT, deriveNextAddresses } from '../../payments/derive-addresses.ts';
import type { Database } from '../../store/db/database.ts';
import { changeAutoDeriveLimit, findAccountKey, listAccountKeys } from '../../store/ledger/account-keys.ts';
import { lockProject } from '../../store/ledger/projects.ts';
import { type AccountXpub, parseAccountXpub } from '../../tron/account-xpub.ts';
import type { Actor } from '../actor.ts';
import { fieldProblem } from '../input/field-error.ts';
import { spotSecret } from '../input/spot-secret.ts';
import { selectProject } from '../projects/select-project.ts';
import { recordActions, recordedActor } from '../record-actions.ts';
import type { AutoLimitView, DerivedAddressesView } from './views.ts';

/** The public key of an account. Some look like a seed phrase by chance, so what is one is never taken for a secret. Errors: `INVALID_ARGUMENT`. */
export function readXpub(text: string): AccountXpub {
  const parsed = parseAccountXpub(text.trim());
  if (parsed.kind === 'ok') return parsed.xpub;
  const secret = spotSecret(text);
  if (secret === null)
    throw new AppError('INVALID_ARGUMENT', say`${{ field: 'xpub' }}: ${parsed.reason}; no address was added`);
  const problems = [fieldProblem('xpub', say`: ${{ secret }}`)];
  throw new AppError('INVALID_ARGUMENT', 'no address was added', { problems });
}

/** `isStored`: the project has derived from it before. */
export type DerivationKey = { projectId: string; xpub: AccountXpub; isStored: boolean };

/** Finds the key to derive from: the given one, else the only one of the project. Errors: `NOT_FOUND`, `INVALID_ARGUMENT`, `CONFLICT`. */
export async function findDerivationKey(
  { db }: { db: Database },
  actor: Actor,
  input: { projectId: string | undefined; xpub: AccountXpub | null },
): Promise<DerivationKey> {
  const { id, network } = await selectProject(db, actor, input.projectId);
  const projectId = encodeId('prj', id);
  if (input.xpub !== null) {
    const key = await findAccountKey(db, network, input.xpub);
    if (key !== null && key.projectId !== id) throw keyOfAnother();
    return { projectId, xpub: input.xpub, isStored: key !== null };
  }
  const keys = await listAccountKeys(db, id);
  const [only] = keys;
  if (only === undefined) {
    throw new AppError(
      'INVALID_ARGUMENT',
      say`this project has no account key yet: give ${{ field: 'xpub' }}, or, if your wallet exports none, paste addresses ("${{ command: 'address add' }}")`,
    );
  }
  if (keys.length === 1) return { projectId, xpub: only.xpub, isStored: true };
  const problems = keys.map(({ xpub, nextIndex }) => {
    const short = `${xpub.slice(0, 10)}…${xpub.slice(-6)}`;
    return { subject: short, message: `${short}  (${nextIndex} addresses so far)` };
  });
  const message = say`this project has several account keys: say which with ${{ field: 'xpub' }}`;
  throw new AppError('INVALID_ARGUMENT', message, { problems });
}

type Deps = { db: Database; now(): UnixMs; random(bytes: number): Uint8Array };
/** `autoLimit`: how many the key may yield by itself in all, `null` to leave it. `isFresh`: as in `deriveNextAddresses`. */
type Input = {
  key: DerivationKey;
  count: number;
  autoLimit: number | null;
  policy: Policy | undefined;
  isFresh: boolean;
};

/**
 * Adds the next addresses of an account key. The caller has made sure that a new key belongs to the project's wallet. Errors:
 * `CONFLICT`.
 */
export async function deriveAddresses(
  deps: Deps,
  actor: Actor,
  { key, count, autoLimit, policy, isFresh }: Input,
): Promise<{ view: DerivedAddressesView; projectPolicy: Policy; autoDeriveLimit: number }> {
  if (key.isStored && autoLimit !== null) await limitDerivation(deps, actor, { key, autoLimit });
  const { id: projectId } = await selectProject(deps.db, actor, key.projectId);
  const autoDeriveLimit = autoLimit ?? AUTO_DERIVE_LIMIT;
  const wanted = { projectId, xpub: key.xpub, count, policy: policy ?? null, isFresh, autoDeriveLimit };
  const outcome = await deriveNextAddresses({ ...deps, actor: recordedActor(actor) }, wanted);
  if (outcome.kind === 'key-of-another-project') throw keyOfAnother();
  if (outcome.kind === 'all-taken') {
    throw new AppError(
      'CONFLICT',
      say`no address was added: all addresses of this key from #${outcome.from + 1} to #${outcome.from + outcome.count} are in projects already. Give the next ones with "${{ command: 'address add' }}", or use another account of your wallet`,
    );
  }
  if (outcome.kind === 'too-soon') {
    throw new AppError(
      'CONFLICT',
      say`no address was added: in a ledger that was restored, a key that may have been used since the backup yields two addresses a second. Run the command again in a minute, or use another account of your wallet and ${{ field: 'isFresh' }} (docs/backup.md)`,
    );
  }
  if (outcome.kind === 'not-wanted') throw new Error('addresses that a person wants are always wanted');
  const { project, added, skipped } = outcome;
  const view = {
    ...{ projectId: key.projectId, network: project.network, policy: outcome.policy },
    added: added.map(({ address, index }) => ({ address, derivationIndex: index })),
    skipped: skipped.map(({ address, index, projectId }) => {
      return { address, derivationIndex: index, projectId: encodeId('prj', projectId) };
    }),
  };
  return { view, projectPolicy: project.policy, autoDeriveLimit };
}

/** Changes how many addresses an account key of a project may yield by itself in all. */
export function limitDerivation(
  { db, now }: Pick<Deps, 'db' | 'now'>,
  actor: Actor,
  { key: { projectId, xpub }, autoLimit }: { key: DerivationKey; autoLimit: number },
): Promise<AutoLimitView> {
  return db.transaction(async (tx) => {
    const { id, network } = await lockProject(tx, (await selectProject(tx, actor, projectId)).id);
    const key = await findAccountKey(tx, network, xpub);
    if (key?.projectId !== id) throw new Error(`project ${projectId} has no such account key`);
    if (key.autoDeriveLimit !== autoLimit) {
      await changeAutoDeriveLimit(tx, key.id, autoLimit);
      const detail = { autoDeriveLimit: { from: key.autoDeriveLimit, to: autoLimit }, accountKeyId: key.id };
      await recordActions(tx, actor, now(), [{ projectId: id, action: 'project.changed', subject: projectId, detail }]);
    }
    return { projectId, network, autoDerived: key.autoDerived, autoDeriveLimit: autoLimit };
  });
}

function keyOfAnother(): AppError {
  return new AppError(
    'CONFLICT',
    'this account key belongs to another project of the network: use another account of your wallet for this one',
  );
}
