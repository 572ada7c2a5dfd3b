import { LOW_DAYS, LOW_PERCENT, USES_OF_A_RATE } from '../../domain/capacity.ts';
import { countCodeWords, wordRange } from '../../domain/code-word.ts';
import { encodeId } from '../../domain/ids.ts';
import { formatAmount, type MicroUsdt, microUsdt, parseAmount } from '../../domain/money.ts';
import { toIso, unixMs } from '../../domain/time.ts';
import { type AmountCapacity, type Capacity, measureCapacity, widthOf } from '../../payments/measure-capacity.ts';
import { systemClock } from '../../runtime/clock.ts';
import { type CapacityProject, findCapacityProject, listReserved } from '../../store/capacity.ts';
import type { Sql } from '../../store/database.ts';
import { CliError } from '../cli-error.ts';
import { clip } from '../clip.ts';
import type { ProjectOption } from '../option-parts.ts';
import { selectProject } from '../select-project.ts';
import { formatFields, formatTable, type Result, type Terminal } from '../terminal.ts';
import { withDatabase } from '../with-database.ts';

export type CapacityOptions = ProjectOption & { amount?: string };

/** Shows how many payable amounts are free and how long they will last: of the amounts in use, or of one on each address. */
export async function showCapacity(terminal: Terminal, options: CapacityOptions): Promise<Result> {
  const amount = options.amount === undefined ? null : readAmount(options.amount);
  return withDatabase(terminal, async ({ db }) => {
    const { id } = await selectProject(db, options.project);
    const now = unixMs(systemClock.now());
    const project = await findCapacityProject(db, id, now);
    if (project === null) throw new Error(`project ${id} vanished; projects are never deleted`);
    const capacity = await measureCapacity(db, project, now, amount === null ? undefined : [amount]);
    return amount === null ? describeProject(project, capacity) : describeAmount(db, project, capacity, amount);
  });
}

function readAmount(text: string): MicroUsdt {
  const amount = parseAmount(text);
  if (amount.kind === 'ok') return amount.amountMicro;
  throw new CliError(
    'INVALID_ARGUMENT',
    `--amount ${clip(text)} ${amount.reason}: give USDT as an invoice asks for it, for example 25.00`,
  );
}

const TABLE = ['AMOUNT', 'FREE', 'OF', 'FREE %', 'A DAY, 7 DAYS', 'A DAY, 30 DAYS', 'DAYS LEFT', ''];

function describeProject(project: CapacityProject, capacity: Capacity): Result {
  const rows = capacity.amounts.map((amount) => [
    formatAmount(amount.requestedMicro),
    String(amount.free),
    String(amount.total),
    percent(amount.freeShare),
    amount.perDay7.toFixed(1),
    amount.perDay30.toFixed(1),
    amount.daysLeft === null ? '' : String(amount.daysLeft),
    amount.isLow ? 'LOW' : '',
  ]);
  const fields = formatFields([...headOf(project), ['verdict', verdictOf(project, capacity)]]);
  return {
    data: { ...dataOf(project, capacity), amounts: capacity.amounts.map((each) => describeForecast(project, each)) },
    text: [fields, formatTable(TABLE, rows)].filter((part) => part !== '').join('\n\n'),
    ...nextOf(project, capacity),
  };
}

async function describeAmount(
  db: Sql,
  project: CapacityProject,
  capacity: Capacity,
  amount: MicroUsdt,
): Promise<Result> {
  const range = wordRange(amount, widthOf(project));
  const total = project.policy === 'exact' ? 1n : countCodeWords(range);
  const addresses = (await listReserved(db, project.id, project.policy, range)).map(
    ({ address, position, reserved }) => ({
      address,
      position,
      total: Number(total),
      free: Number(total > reserved ? total - reserved : 0n),
    }),
  );
  const [found] = capacity.amounts;
  if (found === undefined) throw new Error(`nothing was measured of ${amount}`);
  const fields = formatFields([
    ...headOf(project),
    ['amount', `${formatAmount(amount)} USDT`],
    ['free', `${found.free} of ${found.total} (${percent(found.freeShare)} %)`],
    ['used a day', `${found.perDay7.toFixed(1)} over 7 days, ${found.perDay30.toFixed(1)} over 30 days`],
    ['days left', found.daysLeft === null ? 'not used in the last 30 days' : String(found.daysLeft)],
    ['verdict', verdictOf(project, capacity)],
  ]);
  const rows = addresses.map((row) => [String(row.position), row.address, String(row.free), String(row.total)]);
  const table = formatTable(['POSITION', 'ADDRESS', 'FREE', 'OF'], rows);
  return {
    data: { ...dataOf(project, capacity), ...describeForecast(project, found), addresses },
    text: [fields, table].filter((part) => part !== '').join('\n\n'),
    ...nextOf(project, capacity),
  };
}

function headOf(project: CapacityProject): (readonly [string, string])[] {
  const surcharge = formatAmount(microUsdt(project.max_surcharge_micro));
  return [
    ['project', encodeId('prj', project.id)],
    ['policy', project.policy === 'exact' ? 'exact' : `tail, of less than ${surcharge} USDT`],
    ['active addresses', String(project.active_addresses)],
  ];
}

function verdictOf({ active_addresses, policy }: CapacityProject, { isLow, amounts }: Capacity): string {
  if (active_addresses === 0n) return `no active address of the policy ${policy}: no invoice can be created`;
  if (isLow) return `LOW: ${whyLow(amounts.filter((amount) => amount.isLow))}`;
  if (amounts.length === 0) return 'good: no invoice was asked for in the last 30 days';
  const isRare = amounts.some(({ daysLeft }) => daysLeft !== null && daysLeft < LOW_DAYS);
  return isRare ? `good: fewer than ${USES_OF_A_RATE} uses in 30 days are too few to foretell anything` : 'good';
}

function whyLow(amounts: readonly AmountCapacity[]): string {
  const gone = amounts.filter(({ free }) => free === 0n);
  const scarce = amounts.filter(({ free, total }) => free > 0n && free * 100n < total * LOW_PERCENT);
  const others = amounts.filter((amount) => !gone.includes(amount) && !scarce.includes(amount));
  const parts = [
    [gone, 'nothing is free, and invoices are refused now, for'],
    [scarce, `less than ${LOW_PERCENT} % is free for`],
    [others, `less than ${LOW_DAYS} days are left for`],
  ] as const;
  return parts.flatMap(([found, what]) => (found.length === 0 ? [] : [`${what} ${nameAmounts(found)}`])).join('; ');
}

/** The verdict is one line; the table below it has all. */
const MAX_NAMED = 3;

function nameAmounts(amounts: readonly AmountCapacity[]): string {
  const names = amounts.slice(0, MAX_NAMED).map(({ requestedMicro }) => formatAmount(requestedMicro));
  const more = amounts.length - names.length;
  return more > 0 ? `${names.join(', ')} and ${more} more` : names.join(', ');
}

function nextOf(project: CapacityProject, { isLow }: Capacity): { next?: string } {
  if (!isLow && project.active_addresses > 0n) return {};
  return { next: `add addresses with "quittance address add --project ${encodeId('prj', project.id)} T…"` };
}

function dataOf(project: CapacityProject, { isLow, freeShare, daysLeft }: Capacity) {
  return {
    projectId: encodeId('prj', project.id),
    network: project.network,
    policy: project.policy,
    maxSurcharge: formatAmount(microUsdt(project.max_surcharge_micro)),
    activeAddresses: Number(project.active_addresses),
    low: isLow,
    freeShare,
    daysLeft,
  };
}

function describeForecast(project: CapacityProject, amount: AmountCapacity) {
  return {
    amount: formatAmount(amount.requestedMicro),
    total: Number(amount.total),
    free: Number(amount.free),
    freeShare: amount.freeShare,
    used7Days: Number(amount.used7Days),
    used30Days: Number(amount.used30Days),
    // Before a project was made there was nothing to count.
    countedSince: toIso(unixMs(Math.max(amount.countedSince, project.created_at))),
    perDay7: amount.perDay7,
    perDay30: amount.perDay30,
    daysLeft7: amount.daysLeft7,
    daysLeft30: amount.daysLeft30,
    daysLeft: amount.daysLeft,
    low: amount.isLow,
  };
}

/** Rounded down, so that what is not all free is never shown as 100. */
function percent(share: number): string {
  return (Math.floor(share * 1000) / 10).toFixed(1);
}
