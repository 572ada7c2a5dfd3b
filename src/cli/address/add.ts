import { randomBytes } from 'node:crypto';
import { encodeId } from '../../domain/ids.ts';
import type { Policy } from '../../domain/policy.ts';
import { unixMs } from '../../domain/time.ts';
import { addAddresses, type Operating } from '../../payments/add-addresses.ts';
import { systemClock } from '../../runtime/clock.ts';
import { findAddresses, type OwnedAddress } from '../../store/addresses.ts';
import type { Database } from '../../store/database.ts';
import type { Project } from '../../store/projects.ts';
import { wasEverRestored } from '../../store/restore-safety.ts';
import { CliError, type Problem } from '../cli-error.ts';
import { readOperator } from '../operator.ts';
import { selectProject } from '../select-project.ts';
import type { Result, Terminal } from '../terminal.ts';
import { withDatabase } from '../with-database.ts';
import { type Activation, checkActivation, describeActivation } from './activation.ts';
import { readCandidates, refusedAddresses, usdtContracts } from './candidates.ts';
import { readAddresses } from './read-addresses.ts';

export type AddAddressOptions = {
  project?: string;
  file?: string;
  policy?: Policy;
  by?: string;
  /** `false` with --no-check. */
  check: boolean;
  fresh?: boolean;
};

const NOTHING_ADDED = 'no address was added';

/** Adds all of the addresses or, if anything is wrong with any, none. */
export async function addProjectAddresses(
  terminal: Terminal,
  args: string[],
  options: AddAddressOptions,
): Promise<Result> {
  const operator = readOperator(options.by, terminal.env);
  const entries = await readAddresses(args, options.file, terminal.stdin);
  return withDatabase(terminal, async (database) => {
    const { good, problems } = readCandidates(entries, await usdtContracts(database.config));
    const project = await selectProject(database.db, options.project);
    if (problems.length > 0) {
      const accounts = good.map(({ account }) => account);
      const taken = await findAddresses(database.db, project.network, accounts);
      throw refusedAddresses(NOTHING_ADDED, [...problems, ...taken.map((each) => takenProblem(each, project))]);
    }
    if (options.fresh !== true) await refuseAfterRestore(database.db);
    const wanted = { projectId: project.id, policy: options.policy ?? null, candidates: good };
    const outcome = await addAddresses(operating(database.db, operator), wanted);
    if (outcome.kind === 'taken') {
      const taken = outcome.taken.map((each) => takenProblem(each, project));
      throw refusedAddresses(NOTHING_ADDED, taken, 'CONFLICT');
    }
    const activation = options.check ? await checkActivation(terminal, database, project.network, good) : null;
    const added = good.map(({ address }) => address);
    const next = [
      ...otherPolicyNote(outcome.policy, outcome.project),
      ...(activation === null ? [] : describeActivation(activation, added.length)),
    ];
    return {
      data: {
        projectId: encodeId('prj', project.id),
        network: project.network,
        policy: outcome.policy,
        added,
        activation: activation === null ? null : activationData(activation),
      },
      text: added.map((address) => `added ${address}`).join('\n'),
      ...(next.length === 0 ? {} : { next: next.join('\n') }),
    };
  });
}

/** An address that was added after the backup is not known here, though amounts of it may be in the hands of payers. */
async function refuseAfterRestore(db: Database): Promise<void> {
  if (!(await wasEverRestored(db))) return;
  throw new CliError(
    'CONFLICT',
    `${NOTHING_ADDED}, because this ledger was restored once: an address that was added since that backup is not known any more, and must never be added again. If it had none of these, run the command again with --fresh; else take new ones from your wallet`,
  );
}

/** What a use case of an operator works with. */
export function operating(db: Database, operator: string): Operating {
  return { db, operator, now: () => unixMs(systemClock.now()), random: (bytes) => randomBytes(bytes) };
}

/** New addresses that no invoice can take yet. */
export function otherPolicyNote(policy: Policy, project: Project): string[] {
  if (policy === project.policy) return [];
  const projectId = encodeId('prj', project.id);
  return [
    `these serve the policy ${policy}, and the project's is ${project.policy}: they take invoices after "quittance project update ${projectId} --policy ${policy}"`,
  ];
}

function activationData({ checked, neverActivated, contracts, reason }: Activation) {
  return { checked, neverActivated, contracts, notCheckedBecause: reason };
}

function takenProblem(taken: OwnedAddress, project: Project): Problem {
  const { address, project_id, retired_at, barred_at } = taken;
  const message =
    project_id !== project.id
      ? `${address} belongs to another project (${encodeId('prj', project_id)}): an address serves one project for life, give another one`
      : retired_at === null
        ? `${address} is already in this project: leave it out`
        : barred_at !== null
          ? `${address} was in this project before a backup was restored, and never gets a new invoice: add another one`
          : `${address} is already in this project, and retired: to use it again, run "quittance address activate ${address}"`;
  return { subject: address, message };
}
