import { assertNever } from '../../domain/assert-never.ts';
import { AppError } from '../../domain/errors.ts';
import { encodeId } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import type { Policy } from '../../domain/policy.ts';
import type { UnixMs } from '../../domain/time.ts';
import { AUTO_DERIVE_LIMIT, deriveNextAddresses, findNextAddresses } from '../../payments/derive-addresses.ts';
import type { Database } from '../../store/db/database.ts';
import { changeAutoDeriveLimit, findAccountKey, listAccountKeys } from '../../store/ledger/account-keys.ts';
import { hasAddresses } from '../../store/ledger/addresses.ts';
import { lockProject } from '../../store/ledger/projects.ts';
import type { AccountXpub } from '../../tron/account-xpub.ts';
import type { Actor } from '../actor.ts';
import { mayWait, mustWait, proposeChange } from '../address-changes/propose-change.ts';
import type { Vouching } from '../operation.ts';
import { recordActions, recordedActor } from '../record-actions.ts';
import { selectProject } from '../select-project.ts';
import type { AutoLimitView, DerivedAddressesView, ProposedAddressesView } from './views.ts';

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

type Deps = {
  db: Database;
  now(): UnixMs;
  random(bytes: number): Uint8Array;
  config: { sandbox: boolean };
  addressGuard: Pick<Vouching, 'vouchesFor'>;
};
/**
 * `autoLimit`: how many the key may yield by itself in all, `null` to leave it. `isFresh`: as in `deriveNextAddresses`. `seen`: the addresses
 * that were shown to whoever wants them, and no others are added; `null` where none were.
 */
type Input = {
  key: DerivationKey;
  count: number;
  autoLimit: number | null;
  policy: Policy | undefined;
  isFresh: boolean;
  seen: readonly string[] | null;
};

/** `proposed`: they wait for another owner, or for a day. */
export type Derived =
  | { kind: 'added'; view: DerivedAddressesView; projectPolicy: Policy; autoDeriveLimit: number }
  | { kind: 'proposed'; view: ProposedAddressesView; projectPolicy: Policy };

/**
 * Adds the next addresses of an account key. The caller has made sure that a new key belongs to the project's wallet. What people derive for a
 * project that has an address already waits, unless all of it is signed. Errors: `CONFLICT`.
 */
export async function deriveAddresses(deps: Deps, actor: Actor, input: Input): Promise<Derived> {
  const { key, count, autoLimit, policy, isFresh, seen } = input;
  const { db } = deps;
  if (key.isStored && autoLimit !== null) await limitDerivation(deps, actor, { key, autoLimit });
  const { id: projectId } = await selectProject(db, actor, key.projectId);
  const autoDeriveLimit = autoLimit ?? AUTO_DERIVE_LIMIT;
  const wanted = { projectId, xpub: key.xpub, count, policy: policy ?? null, isFresh, autoDeriveLimit };
  let only = seen;
  if (seen !== null || mayWait(actor, deps.config)) {
    const next = await findNextAddresses(deps, wanted);
    if (next.kind !== 'found') throw notDerived(next);
    const addresses = next.free.map(({ address }) => address);
    if (seen !== null && addresses.join() !== seen.join()) throw notDerived({ kind: 'others-come-next' });
    if (mustWait(actor, deps, { project: next.project, addresses }) && (await hasAddresses(db, projectId))) {
      const indexes = next.free.map(({ index }) => index);
      const derivation = { xpub: key.xpub, keyFirstIndex: next.firstIndex, autoDeriveLimit, indexes };
      return propose(deps, actor, { projectId, policy, addresses, derivation });
    }
    only = addresses;
  }
  const outcome = await deriveNextAddresses({ ...deps, actor: recordedActor(actor) }, { ...wanted, only });
  if (outcome.kind !== 'derived') throw notDerived(outcome);
  const { project, added, skipped } = outcome;
  const view = {
    ...{ projectId: key.projectId, network: project.network, policy: outcome.policy },
    added: added.map(({ address, index }) => ({ address, derivationIndex: index })),
    skipped: skipped.map(({ address, index, projectId }) => {
      return { address, derivationIndex: index, projectId: encodeId('prj', projectId) };
    }),
  };
  return { kind: 'added', view, projectPolicy: project.policy, autoDeriveLimit };
}

type Proposed = Pick<Parameters<typeof proposeChange>[3], 'addresses' | 'derivation'> & {
  projectId: string;
  policy: Policy | undefined;
};

function propose(
  deps: Deps,
  actor: Actor,
  { projectId, policy: asked, ...wanted }: Proposed,
): Promise<Extract<Derived, { kind: 'proposed' }>> {
  return deps.db.transaction(async (tx) => {
    const project = await lockProject(tx, projectId);
    const policy = asked ?? project.policy;
    const proposed = await proposeChange(tx, deps, actor, { project, policy, ...wanted });
    const about = { projectId: encodeId('prj', projectId), network: project.network, policy };
    return { kind: 'proposed', view: { ...about, proposed, activation: null }, projectPolicy: project.policy };
  });
}

type NotDerived = Exclude<Awaited<ReturnType<typeof deriveNextAddresses>>, { kind: 'derived' }>;

/** Why an account key yields no address. */
export function notDerived(outcome: NotDerived): AppError {
  switch (outcome.kind) {
    case 'key-of-another-project':
      return keyOfAnother();
    case 'all-taken':
      return new AppError(
        'CONFLICT',
        say`no address was added: all addresses of this key from #${outcome.from + 1} to #${outcome.from + outcome.count} are in projects already. Give the next ones with "${{ command: 'address add' }}", or use another account of your wallet`,
      );
    case 'too-soon':
      return new AppError(
        'CONFLICT',
        say`no address was added: in a ledger that was restored, a key that may have been used since the backup yields two addresses a second. Run the command again in a minute, or use another account of your wallet and ${{ field: 'isFresh' }} (docs/backup.md)`,
      );
    case 'others-come-next':
      return new AppError(
        'CONFLICT',
        'no address was added: other addresses of this key come next by now. Look at them first',
      );
    case 'not-wanted':
      throw new Error('addresses that a person wants are always wanted');
    default:
      return assertNever(outcome);
  }
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
