import {
  type AccountXpub,
  type DerivedAddress,
  deriveAddresses as derive,
  parseAccountXpub,
} from '@quittance/tron/account-xpub';
import { parseAddress, type TronAddress } from '@quittance/tron/address';
import { assertNever } from '../../../core/domain/assert-never.ts';
import { AppError, invalidArgument } from '../../../core/domain/errors.ts';
import { encodeId } from '../../../core/domain/ids.ts';
import { say, type Text } from '../../../core/domain/message.ts';
import type { Network } from '../../../core/domain/network.ts';
import type { Policy } from '../../../core/domain/policy.ts';
import { AUTO_DERIVE_LIMIT, deriveNextAddresses, findNextAddresses } from '../../../core/payments/derive-addresses.ts';
import { type Static, Type } from '../../../core/runtime/type.ts';
import type { Database } from '../../../core/store/db/database.ts';
import { commandOf } from '../../../core/store/db/rows-of.ts';
import { findAccountKey, listAccountKeys } from '../../../core/store/ledger/account-keys.ts';
import { hasAddresses } from '../../../core/store/ledger/addresses.ts';
import { lockProject } from '../../../core/store/ledger/projects.ts';
import type { Actor } from '../actor.ts';
import { clip, detectSecret, FieldError, fieldProblem } from '../input/problems.ts';
import { type Given, localOperation, type OperationDeps } from '../operation.ts';
import { BY, flag, line, projectId } from '../option.ts';
import { recordAction, recordedActor } from '../record-actions.ts';
import { selectProject } from '../select.ts';
import { MAX_PROPOSED, mayWait, mustWait, proposeChange } from './address-changes.ts';
import { type Proposed, policyOption } from './addresses.ts';

/** Changes the total number of addresses that may be derived automatically from a key. */
const changeAutoDeriveLimit = commandOf(
  'account-key-change-auto-derive-limit',
  'update account_keys set auto_derive_limit = $2 where id = $1',
  (id: string, limit: number) => [id, limit],
);

/**
 * Reads an account key. A valid key is never treated as a secret, although some look like a seed phrase by chance. Throws
 * `INVALID_ARGUMENT`.
 */
function readXpub(text: string): AccountXpub {
  const parsed = parseAccountXpub(text.trim());
  if (parsed.kind === 'ok') return parsed.xpub;
  const secret = detectSecret(text);
  if (secret === null) throw invalidArgument`${{ field: 'xpub' }}: ${parsed.reason}; no address was added`;
  const problems = [fieldProblem('xpub', say`: ${{ secret }}`)];
  throw new AppError('INVALID_ARGUMENT', 'no address was added', { problems });
}

/** Deriving an address takes about a millisecond, in a transaction that locks the project. */
const MAX_COUNT = 1000;

/** Reads how many addresses to derive. Throws `INVALID_ARGUMENT`. */
function readCount(text = ''): number {
  const count = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (count >= 1 && count <= MAX_COUNT) return count;
  throw new FieldError(
    'count',
    `is ${clip(text)}: use a number from 1 to ${MAX_COUNT}; the next call continues after the last address`,
  );
}

/** The maximum number of addresses that one key may derive automatically in total. */
const MAX_AUTO_LIMIT = 10_000;

/** Reads how many addresses a key may derive automatically. Throws `INVALID_ARGUMENT`. */
function readAutoLimit(text: string): number {
  const limit = /^\d{1,5}$/.test(text) ? Number(text) : Number.POSITIVE_INFINITY;
  if (limit <= MAX_AUTO_LIMIT) return limit;
  throw new FieldError('autoLimit', `is ${clip(text)}: use a number from 0 (never) to ${MAX_AUTO_LIMIT}`);
}

/** How many of the last characters of address #1 the operator must read in the wallet. They aren't shown here. */
export const ASKED_LENGTH = 6;

/** Returns an account key's first three addresses, with the end of #1 hidden, to compare with a wallet. */
export function firstAddresses(xpub: AccountXpub) {
  const derived = derive(xpub, 0, 3);
  const [own] = derived;
  if (own === undefined) throw new Error('no address was derived');
  return {
    addresses: derived.map(shown),
    /** Throws `INVALID_ARGUMENT` if the text is neither address #1 nor its end, which a person reads in the wallet. */
    refuseOther: (typed: string) => {
      const isOwn = typed === own.address || typed === own.address.slice(-ASKED_LENGTH);
      if (!isOwn) throw mismatch('as you typed it', derived);
    },
    /** Throws `INVALID_ARGUMENT` if the text is any address except #1. */
    refuseOtherAddress: (given: string) => {
      const address = given.trim();
      if (address === own.address) return;
      const parsed = parseAddress(address);
      if (parsed.kind === 'ok') throw mismatch(address, derived);
      // The text may be anything from a clipboard, so it isn't repeated.
      throw invalidArgument`${{ field: 'first' }}: ${parsed.reason}; no address was added`;
    },
  };
}

function mismatch(given: string, derived: readonly DerivedAddress[]): AppError {
  return new AppError(
    'INVALID_ARGUMENT',
    `no address was added: your wallet's first address (${given}) is not the first address of this key (${derived.map(shown).join(', ')}). ` +
      "The key may belong to a different account, wallet or coin: export the key of m/44'/195'/0' for TRON, or paste addresses instead",
  );
}

/** Hides the end of #1 even after a wrong attempt, because the person has to read it in the wallet and not on the screen. */
function shown({ address, index }: DerivedAddress): string {
  const text = index === 0 ? address.slice(0, -ASKED_LENGTH) + '.'.repeat(ASKED_LENGTH) : address;
  return `#${index + 1} ${text}`;
}

/** `isStored` means that the project has derived addresses from it before. */
type DerivationKey = { projectId: string; xpub: AccountXpub; isStored: boolean };

const keyInput = {
  xpub: line('<xpub>', "extended public key of the account, m/44'/195'/0' (default: the project's current key)"),
  count: line('<n>', 'number of addresses to add, 1 to 1000'),
  autoLimit: line(
    '<n>',
    'maximum number of addresses to add automatically when amounts run low (default for a new key: 100)',
  ),
};

const readKey = ({ projectId, xpub }: { projectId?: string | undefined; xpub?: string | undefined }) => ({
  projectId,
  xpub: xpub === undefined ? null : readXpub(xpub),
});

/** Finds the key to derive from: the given one, or else the project's only key. Throws `NOT_FOUND`, `INVALID_ARGUMENT` or `CONFLICT`. */
export const findDerivationKey = localOperation({
  action: 'findDerivationKey',
  input: Type.Object({ projectId: projectId(), xpub: keyInput.xpub }),
  read: readKey,
  run: async ({ db }: { db: Database }, actor, { projectId: wanted, xpub }): Promise<DerivationKey> => {
    const { id, network } = await selectProject(db, actor, wanted);
    const projectId = encodeId('prj', id);
    if (xpub !== null) {
      const key = await findAccountKey(db, network, xpub);
      if (key !== null && key.projectId !== id) throw notDerived({ kind: 'key-of-another-project' });
      return { projectId, xpub: xpub, isStored: key !== null };
    }
    const keys = await listAccountKeys(db, id);
    const [only] = keys;
    if (only === undefined)
      throw invalidArgument`this project has no account key yet: give ${{ field: 'xpub' }}, or, if your wallet does not export account keys, paste addresses ("${{ command: 'address add' }}")`;
    if (keys.length === 1) return { projectId, xpub: only.xpub, isStored: true };
    const problems = keys.map(({ xpub, nextIndex }) => {
      const short = `${xpub.slice(0, 10)}…${xpub.slice(-6)}`;
      return { subject: short, message: `${short}  (${nextIndex} addresses so far)` };
    });
    const message = say`this project has several account keys: choose one with ${{ field: 'xpub' }}`;
    throw new AppError('INVALID_ARGUMENT', message, { problems });
  },
});

/** Indexes start at 0, but people count from 1. `projectId` is the project that already has the address. */
type Derivable = { address: TronAddress; derivationIndex: number };
type Skipped = Derivable & { projectId: string };

const input = Type.Object({
  ...keyInput,
  first: line('<address>', 'first address that your wallet shows (default: Quittance asks for it)'),
  ...{ projectId: projectId(), policy: policyOption() },
  isFresh: flag('after a restore: confirm that Quittance has never had this key, and start at its first address'),
  seen: Type.Optional(Type.Array(Type.String())),
});

/**
 * `autoLimit` is the number of addresses that the key may derive automatically in total; `null` leaves it unchanged. `isFresh` is explained
 * at `deriveNextAddresses`. `seen` contains the addresses that the person was shown, and no others are added. It's `null` if none were
 * shown.
 */
function readWanted({ autoLimit, count, policy, isFresh = false, seen, ...key }: Given<Static<typeof input>>) {
  const limit = autoLimit === undefined ? null : readAutoLimit(autoLimit);
  const wanted = { count: readCount(count), autoLimit: limit, policy, isFresh, seen: seen ?? null };
  return { ...wanted, ...readKey(key) };
}

/**
 * Shows the addresses that an account key would add next, so that they can be compared with a wallet. Stores nothing. `first` contains the
 * key's first three addresses, with the end of #1 hidden. `skipped` contains addresses that already belong to a project. Throws `NOT_FOUND`
 * or `CONFLICT`.
 */
export const showDerivation = localOperation({
  action: 'showDerivation',
  input,
  read: (given) => {
    const wanted = readWanted(given);
    if (wanted.count <= MAX_PROPOSED) return wanted;
    throw new FieldError(
      'count',
      `is ${wanted.count}: use ${MAX_PROPOSED} at most, because you have to compare them with your wallet`,
    );
  },
  run: async (deps: Pick<OperationDeps, 'db' | 'now'>, actor, { count, isFresh, ...wanted }) => {
    const key = await findDerivationKey.run(deps, actor, wanted);
    const { id: projectId } = await selectProject(deps.db, actor, key.projectId);
    const next = await findNextAddresses(deps, { projectId, xpub: key.xpub, count, isFresh });
    if (next.kind !== 'found') throw notDerived(next);
    const view = {
      ...{ projectId: key.projectId, isStored: key.isStored, first: firstAddresses(key.xpub).addresses },
      ...{ next: next.free.map(viewDerived), skipped: next.skipped.map(viewSkipped) },
    };
    return { key, view };
  },
});
export type DerivationView = Awaited<ReturnType<typeof showDerivation.run>>['view'];

type Indexed = Pick<DerivedAddress, 'address' | 'index'>;
const viewDerived = ({ address, index }: Indexed): Derivable => ({ address, derivationIndex: index });
const viewSkipped = (one: Indexed & { projectId: string }): Skipped => ({
  ...viewDerived(one),
  projectId: encodeId('prj', one.projectId),
});

type DerivedView = { projectId: string; network: Network; policy: Policy; added: Derivable[]; skipped: Skipped[] };
export type Derived = { kind: 'added'; view: DerivedView; projectPolicy: Policy; autoDeriveLimit: number } | Proposed;
type DeriveDeps = Pick<OperationDeps, 'db' | 'now' | 'random'> & {
  config: Pick<OperationDeps['config'], 'sandbox'>;
  addressGuard: Pick<OperationDeps['addressGuard'], 'vouchesFor'>;
};

/**
 * Adds the next addresses from an account key. The caller has verified that a new key belongs to the project's wallet. In a project that
 * already has an address, addresses added by people have to wait unless all of them are signed. Throws `CONFLICT`.
 */
export const deriveAddresses = localOperation({
  action: 'deriveAddresses',
  command: 'address derive',
  does: "add the next addresses of your wallet's account, from its public key (watch-only)",
  by: BY,
  input,
  read: readWanted,
  run: async (deps: DeriveDeps, actor, { count, autoLimit, policy, isFresh, seen, ...of }): Promise<Derived> => {
    const { db } = deps;
    const key = await findDerivationKey.run(deps, actor, of);
    if (key.isStored && autoLimit !== null) await changeLimit(deps, actor, { key, autoLimit });
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
      ...{ added: added.map(viewDerived), skipped: skipped.map(viewSkipped) },
    };
    return { kind: 'added', view, projectPolicy: project.policy, autoDeriveLimit };
  },
});

type Wanting = Pick<Parameters<typeof proposeChange>[3], 'addresses' | 'derivation'> & {
  projectId: string;
  policy: Policy | undefined;
};

function propose(deps: DeriveDeps, actor: Actor, { projectId, policy: asked, ...wanted }: Wanting): Promise<Proposed> {
  return deps.db.transaction(async (tx) => {
    const project = await lockProject(tx, projectId);
    const policy = asked ?? project.policy;
    const proposed = await proposeChange(tx, deps, actor, { project, policy, ...wanted });
    const about = { projectId: encodeId('prj', projectId), network: project.network, policy };
    return { kind: 'proposed', view: { ...about, proposed, activation: null }, projectPolicy: project.policy };
  });
}

type NotDerived = Exclude<Awaited<ReturnType<typeof deriveNextAddresses>>, { kind: 'derived' }>;

const notDerived = (outcome: NotDerived) => new AppError('CONFLICT', whyNotDerived(outcome));

/** Explains why no address was derived from an account key. */
function whyNotDerived(outcome: NotDerived): Text {
  switch (outcome.kind) {
    case 'key-of-another-project':
      return KEY_OF_ANOTHER;
    case 'all-taken':
      return say`no address was added: all addresses of this key from #${outcome.from + 1} to #${outcome.from + outcome.count} are already in projects. Add the next addresses with "${{ command: 'address add' }}", or use another account in your wallet`;
    case 'too-soon':
      return say`no address was added: after a restore, a key that may have been used since the backup can derive only two new addresses per second. Run the command again in a minute, or use another account in your wallet with ${{ field: 'isFresh' }} (docs/guides/backup.md)`;
    case 'others-come-next':
      return 'no address was added, because the next addresses of this key have changed. Check the new addresses first';
    case 'not-wanted':
    case 'not-signed':
      throw new Error('an explicit request for addresses was judged unnecessary');
    default:
      return assertNever(outcome);
  }
}

/** Changes how many addresses a project's account key may derive automatically in total. */
export const limitDerivation = localOperation({
  action: 'limitDerivation',
  input: Type.Object({ projectId: projectId(), xpub: keyInput.xpub, autoLimit: Type.String() }),
  read: ({ autoLimit, ...key }) => ({ autoLimit: readAutoLimit(autoLimit), ...readKey(key) }),
  run: async (deps: Pick<OperationDeps, 'db' | 'now'>, actor, { autoLimit, ...of }) => {
    return changeLimit(deps, actor, { key: await findDerivationKey.run(deps, actor, of), autoLimit });
  },
});

type Limit = { key: DerivationKey; autoLimit: number };

function changeLimit({ db, now }: Pick<OperationDeps, 'db' | 'now'>, actor: Actor, { key: of, autoLimit }: Limit) {
  const { projectId, xpub } = of;
  return db.transaction(async (tx) => {
    const { id, network } = await lockProject(tx, (await selectProject(tx, actor, projectId)).id);
    const key = await findAccountKey(tx, network, xpub);
    if (key?.projectId !== id) throw new Error(`project ${projectId} has no such account key`);
    if (key.autoDeriveLimit !== autoLimit) {
      await changeAutoDeriveLimit(tx, key.id, autoLimit);
      const detail = { autoDeriveLimit: { from: key.autoDeriveLimit, to: autoLimit }, accountKeyId: key.id };
      await recordAction(tx, actor, now(), 'project.changed', { projectId: id, subject: projectId, detail });
    }
    return { projectId, network, autoDerived: key.autoDerived, autoDeriveLimit: autoLimit };
  });
}

const KEY_OF_ANOTHER =
  'this account key belongs to another project on this network: use another account in your wallet for this project';

export const operations = [deriveAddresses];
