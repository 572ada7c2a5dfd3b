import { comparePolicies } from '../../domain/address-need.ts';
import { encodeId } from '../../domain/ids.ts';
import { formatAmount, type MicroUsdt, microUsdt } from '../../domain/money.ts';
import { countPayable, payableRange } from '../../domain/policy.ts';
import { toIso, type UnixMs, unixMs } from '../../domain/time.ts';
import { type AmountCapacity, measureCapacity } from '../../payments/measure-capacity.ts';
import type { Sql } from '../../store/db/database.ts';
import { type CapacityProject, findCapacityProject, listReserved } from '../../store/ledger/capacity.ts';
import type { Actor } from '../actor.ts';
import { selectProject } from '../select-project.ts';
import type { AmountCapacityView, CapacityOfAmountView, CapacityView } from './views.ts';

type Deps = { db: Sql; now(): UnixMs };

/** How many payable amounts are free, and how long they last, of the amounts in use. Errors: `NOT_FOUND`, `INVALID_ARGUMENT`. */
export async function showCapacity(
  deps: Deps,
  actor: Actor,
  input: { projectId: string | undefined },
): Promise<CapacityView> {
  const { project, capacity } = await measure(deps, actor, input.projectId);
  const { isLow: low, freeShare, daysLeft, amounts } = capacity;
  return {
    ...{ ...viewProject(project, amounts), low, freeShare, daysLeft },
    amounts: amounts.map((each) => viewAmount(project, each)),
  };
}

/** The same of one amount, on each address; at most 10,000. */
export async function showCapacityOfAmount(
  deps: Deps,
  actor: Actor,
  { projectId, amount }: { projectId: string | undefined; amount: MicroUsdt },
): Promise<CapacityOfAmountView> {
  const { project, capacity } = await measure(deps, actor, projectId, [amount]);
  const [found] = capacity.amounts;
  if (found === undefined) throw new Error(`nothing was measured of ${amount}`);
  const range = payableRange(project, amount);
  const total = countPayable(project.policy, range);
  const addresses = (await listReserved(deps.db, project.id, project.policy, range)).map(
    ({ address, position, reserved }) => {
      return { address, position, total: Number(total), free: Number(total > reserved ? total - reserved : 0n) };
    },
  );
  const { low, freeShare, daysLeft, ...forecast } = viewAmount(project, found);
  return { ...viewProject(project, [found]), ...{ low, freeShare, daysLeft }, ...forecast, addresses };
}

async function measure({ db, now }: Deps, actor: Actor, projectId: string | undefined, amounts?: readonly MicroUsdt[]) {
  const { id } = await selectProject(db, actor, projectId);
  const at = now();
  const project = await findCapacityProject(db, id, at);
  if (project === null) throw new Error(`project ${id} vanished; projects are never deleted`);
  return { project, capacity: await measureCapacity(db, project, at, amounts) };
}

function viewProject(project: CapacityProject, amounts: readonly AmountCapacity[]) {
  const { id, network, policy, maxSurchargeMicro, activeAddresses } = project;
  const used = amounts.map(({ requestedMicro, perDay7, perDay30 }) => {
    return { requestedMicro, perDay: Math.max(perDay7, perDay30) };
  });
  return {
    ...{ projectId: encodeId('prj', id), network, policy },
    maxSurcharge: formatAmount(microUsdt(maxSurchargeMicro)),
    activeAddresses: Number(activeAddresses),
    policies: comparePolicies(project, used).map(({ addedMicro, for90Days, ...compared }) => {
      return { ...compared, addedBelow: formatAmount(addedMicro), addressesFor90Days: for90Days };
    }),
  };
}

function viewAmount(project: CapacityProject, amount: AmountCapacity): AmountCapacityView {
  return {
    amount: formatAmount(amount.requestedMicro),
    total: Number(amount.total),
    free: Number(amount.free),
    freeShare: amount.freeShare,
    used7Days: Number(amount.used7Days),
    used30Days: Number(amount.used30Days),
    // Before a project was made there was nothing to count.
    countedSince: toIso(unixMs(Math.max(amount.countedSince, project.createdAt))),
    perDay7: amount.perDay7,
    perDay30: amount.perDay30,
    daysLeft7: amount.daysLeft7,
    daysLeft30: amount.daysLeft30,
    daysLeft: amount.daysLeft,
    low: amount.isLow,
  };
}
