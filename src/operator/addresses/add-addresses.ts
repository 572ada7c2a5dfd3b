import { AppError, type FieldProblem } from '../../domain/errors.ts';
import { encodeId, uuidV7 } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import type { Network } from '../../domain/network.ts';
import type { Policy } from '../../domain/policy.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Database, Sql } from '../../store/db/database.ts';
import { findAddresses, hasAddresses, insertAddresses, type OwnedAddress } from '../../store/ledger/addresses.ts';
import { lockProject } from '../../store/ledger/projects.ts';
import type { AccountHex } from '../../tron/address.ts';
import { type Actor, maySee } from '../actor.ts';
import { mustWait, proposeChange } from '../address-changes/propose-change.ts';
import { wasEverRestored } from '../backup/restore-safety.ts';
import type { Vouching } from '../operation.ts';
import { recordActions } from '../record-actions.ts';
import { selectProject } from '../select-project.ts';
import { usdtContracts } from '../usdt-contracts.ts';
import { checkActivation, type WithNodes } from './check-activation.ts';
import type { AddressEntry } from './csv.ts';
import { type Candidate, readCandidates, refusedAddresses } from './read-candidates.ts';
import type { AddedAddressesView, ProposedAddressesView } from './views.ts';

/** `withNodes`: of a network that is configured; `null` where the nodes are not to be asked. */
export type AddDeps = {
  db: Database;
  now(): UnixMs;
  random(bytes: number): Uint8Array;
  config: { sandbox: boolean; networks: Partial<Record<Network, { usdt: AccountHex }>> };
  addressGuard: Pick<Vouching, 'vouchesFor'>;
  withNodes: ((network: Network) => WithNodes) | null;
};
/** `policy`: the project's if none is given. `isFresh`: the ledger never had any of them, also not in what a restore lost. */
type Input = {
  projectId: string | undefined;
  entries: readonly AddressEntry[];
  policy: Policy | undefined;
  isFresh: boolean;
};

const NOTHING_ADDED = 'no address was added';

/** `proposed`: they wait for another owner, or for a day. */
export type Added =
  | { kind: 'added'; view: AddedAddressesView; projectPolicy: Policy }
  | { kind: 'proposed'; view: ProposedAddressesView; projectPolicy: Policy };

/**
 * Adds addresses to a project in their order, all of them or none, and says what nodes know of them. What people and keys add to a project
 * that has an address already waits, unless all of it is signed. Errors: `INVALID_ARGUMENT`, `NOT_FOUND`, `CONFLICT`.
 */
export async function addAddresses(deps: AddDeps, actor: Actor, input: Input): Promise<Added> {
  const { db, now, config, withNodes } = deps;
  const { good, problems } = readCandidates(input.entries, usdtContracts(config));
  const { id: projectId, network } = await selectProject(db, actor, input.projectId);
  const findTaken: FindTaken = async (sql, accounts) =>
    (await findAddresses(sql, network, accounts)).map((each) => takenProblem(each, projectId, actor));
  if (problems.length > 0) {
    const accounts = good.map(({ account }) => account);
    throw refusedAddresses(NOTHING_ADDED, [...problems, ...(await findTaken(db, accounts))]);
  }
  // An address that was added after the backup is not known here, though amounts of it may be in the hands of payers.
  if (!input.isFresh && (await wasEverRestored(db))) {
    throw new AppError(
      'CONFLICT',
      say`${NOTHING_ADDED}, because this ledger was restored once: an address that was added since that backup is not known any more, and must never be added again. If it had none of these, run the command again with ${{ field: 'isFresh' }}; else take new ones from your wallet`,
    );
  }
  const { policy, projectPolicy, change } = await db.transaction(async (tx) => {
    const project = await lockProject(tx, projectId);
    const policy = input.policy ?? project.policy;
    const done = { policy, projectPolicy: project.policy };
    const addresses = good.map(({ address }) => address);
    if (!mustWait(actor, deps, { project, addresses }) || !(await hasAddresses(tx, projectId))) {
      await insertAll(tx, deps, actor, { projectId, policy, good, findTaken, actedAt: now() });
      return { ...done, change: null };
    }
    const taken = await findTaken(
      tx,
      good.map(({ account }) => account),
    );
    if (taken.length > 0) throw refusedAddresses(NOTHING_ADDED, taken, 'CONFLICT');
    return { ...done, change: await proposeChange(tx, deps, actor, { project, policy, addresses, derivation: null }) };
  });
  const isConfigured = config.sandbox ? network === 'devnet' : config.networks[network] !== undefined;
  const ask: WithNodes = isConfigured && withNodes !== null ? withNodes(network) : notConfigured(network);
  const about = { projectId: encodeId('prj', projectId), network, policy };
  const activation = withNodes === null ? null : await checkActivation(ask, good);
  if (change !== null) return { kind: 'proposed', view: { ...about, proposed: change, activation }, projectPolicy };
  const added = good.map(({ address }) => address);
  return { kind: 'added', view: { ...about, added, activation }, projectPolicy };
}

type FindTaken = (sql: Sql, accounts: readonly AccountHex[]) => Promise<FieldProblem[]>;

async function insertAll(
  tx: Sql,
  { random }: AddDeps,
  actor: Actor,
  {
    projectId,
    policy,
    good,
    findTaken,
    actedAt,
  }: { projectId: string; policy: Policy; good: readonly Candidate[]; findTaken: FindTaken; actedAt: UnixMs },
): Promise<void> {
  const entries = good.map((candidate) => ({ ...candidate, id: uuidV7(actedAt, random(10)), index: null }));
  const added = new Set(await insertAddresses(tx, { projectId, policy, accountKeyId: null, entries }));
  const left = good.filter(({ address }) => !added.has(address)).map(({ account }) => account);
  if (left.length > 0) throw refusedAddresses(NOTHING_ADDED, await findTaken(tx, left), 'CONFLICT');
  const done = { projectId, action: 'address.added', detail: { policy } } as const;
  await recordActions(
    tx,
    actor,
    actedAt,
    good.map(({ address }) => ({ ...done, subject: address })),
  );
}

const notConfigured = (network: Network) => async () => {
  throw new Error(`no node of ${network} is configured here`);
};

function takenProblem(
  { address, projectId, retiredAt, barredAt }: OwnedAddress,
  wantedBy: string,
  actor: Actor,
): FieldProblem {
  const other = maySee(actor, projectId) ? ` (${encodeId('prj', projectId)})` : '';
  const message =
    projectId !== wantedBy
      ? `${address} belongs to another project${other}: an address serves one project for life, give another one`
      : retiredAt === null
        ? `${address} is already in this project: leave it out`
        : barredAt !== null
          ? `${address} was in this project before a backup was restored, and never gets a new invoice: add another one`
          : say`${address} is already in this project, and retired: to use it again, run "${{ command: 'address activate', args: [address] }}"`;
  return { subject: address, message };
}
