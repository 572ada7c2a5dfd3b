import { LOW_DAYS, LOW_PERCENT, USES_OF_A_RATE } from '../../domain/capacity.ts';
import { showCapacityOfAmountOperation, showCapacityOperation } from '../../operator/addresses/operations.ts';
import type {
  AddressCapacityView,
  AmountCapacityView,
  CapacityOfAmountView,
  CapacityView,
  ComparedPolicyView,
} from '../../operator/addresses/views.ts';
import { formatFields } from '../../operator/command-text.ts';
import { runOperation } from '../terminal/run-operation.ts';
import { type Column, tableOf } from '../terminal/table.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';

const AMOUNTS: readonly Column<AmountCapacityView>[] = [
  ['AMOUNT', ({ amount }) => amount],
  ['FREE', ({ free }) => String(free)],
  ['OF', ({ total }) => String(total)],
  ['FREE %', ({ freeShare }) => percent(freeShare)],
  ['A DAY, 7 DAYS', ({ perDay7 }) => perDay7.toFixed(1)],
  ['A DAY, 30 DAYS', ({ perDay30 }) => perDay30.toFixed(1)],
  ['DAYS LEFT', ({ daysLeft }) => (daysLeft === null ? '' : String(daysLeft))],
  ['', ({ low }) => (low ? 'LOW' : '')],
];

export async function printCapacity(terminal: Terminal, projectId: string | undefined): Promise<Result> {
  const data = await runOperation(terminal, showCapacityOperation, { projectId });
  const fields = formatFields([...headOf(data), ['verdict', verdictOf(data, data.amounts)]]);
  return { data, text: joinParts(fields, tableOf(AMOUNTS, data.amounts), compare(data)), ...nextOf(data) };
}

const ADDRESSES: readonly Column<AddressCapacityView>[] = [
  ['POSITION', ({ position }) => String(position)],
  ['ADDRESS', ({ address }) => address],
  ['FREE', ({ free }) => String(free)],
  ['OF', ({ total }) => String(total)],
];

export async function printCapacityOfAmount(
  terminal: Terminal,
  projectId: string | undefined,
  amount: string,
): Promise<Result> {
  const data = await runOperation(terminal, showCapacityOfAmountOperation, { projectId, amount });
  const fields = formatFields([
    ...headOf(data),
    ['amount', `${data.amount} USDT`],
    ['free', `${data.free} of ${data.total} (${percent(data.freeShare)} %)`],
    ['used a day', `${data.perDay7.toFixed(1)} over 7 days, ${data.perDay30.toFixed(1)} over 30 days`],
    ['days left', data.daysLeft === null ? 'not used in the last 30 days' : String(data.daysLeft)],
    ['verdict', verdictOf(data, [data])],
  ]);
  return { data, text: joinParts(fields, tableOf(ADDRESSES, data.addresses), compare(data)), ...nextOf(data) };
}

const POLICIES: readonly Column<ComparedPolicyView>[] = [
  ['POLICY', ({ policy }) => policy],
  ['INVOICES OF AN AMOUNT ON AN ADDRESS', ({ perAddress }) => String(perAddress)],
  ['PAYERS PAY MORE, LESS THAN', ({ addedBelow }) => addedBelow],
  ['DECIMALS TO SEND', ({ decimals }) => (decimals === null ? "the price's" : String(decimals))],
  ['ADDRESSES FOR 90 DAYS', ({ addressesFor90Days: count }) => (count === null ? '' : String(count))],
];

/** The other policies have the limit that is usual for them. */
function compare({ policies }: Measured): string {
  return tableOf(POLICIES, policies);
}

function joinParts(...parts: string[]): string {
  return parts.filter((part) => part !== '').join('\n\n');
}

type Measured = CapacityView | CapacityOfAmountView;

function headOf({ projectId, policy, maxSurcharge, activeAddresses }: Measured): (readonly [string, string])[] {
  return [
    ['project', projectId],
    ['policy', policy === 'exact' ? policy : `${policy}, of less than ${maxSurcharge} USDT`],
    ['active addresses', String(activeAddresses)],
  ];
}

function verdictOf({ activeAddresses, policy, low }: Measured, amounts: readonly AmountCapacityView[]): string {
  if (activeAddresses === 0) return `no active address of the policy ${policy}: no invoice can be created`;
  if (low) return `LOW: ${whyLow(amounts.filter((amount) => amount.low))}`;
  if (amounts.length === 0) return 'good: no invoice was asked for in the last 30 days';
  const isRare = amounts.some(({ daysLeft }) => daysLeft !== null && daysLeft < LOW_DAYS);
  return isRare ? `good: fewer than ${USES_OF_A_RATE} uses in 30 days are too few to foretell anything` : 'good';
}

function whyLow(amounts: readonly AmountCapacityView[]): string {
  const gone = amounts.filter(({ free }) => free === 0);
  const scarce = amounts.filter(({ free, total }) => free > 0 && free * 100 < total * Number(LOW_PERCENT));
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

function nameAmounts(amounts: readonly AmountCapacityView[]): string {
  const names = amounts.slice(0, MAX_NAMED).map(({ amount }) => amount);
  const more = amounts.length - names.length;
  return more > 0 ? `${names.join(', ')} and ${more} more` : names.join(', ');
}

function nextOf({ projectId, low, activeAddresses }: Measured): { next?: string } {
  if (!low && activeAddresses > 0) return {};
  return { next: `add addresses with "quittance address add --project ${projectId} T…"` };
}

/** Rounded down, so that what is not all free is never shown as 100. */
function percent(share: number): string {
  return (Math.floor(share * 1000) / 10).toFixed(1);
}
