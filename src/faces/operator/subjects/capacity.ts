import { comparePolicies, LOW_DAYS, LOW_PERCENT, USES_OF_A_RATE } from '../../../core/domain/capacity.ts';
import { say } from '../../../core/domain/message.ts';
import { type MicroUsdt, parseAmount } from '../../../core/domain/money.ts';
import { countPayable, type Policy, payableRange, type WordRange } from '../../../core/domain/policy.ts';
import { type UnixMs, unixMs } from '../../../core/domain/time.ts';
import {
  type AmountCapacity,
  type CapacityProject,
  findCapacityProject,
  measureCapacity,
} from '../../../core/payments/measure-capacity.ts';
import { Type } from '../../../core/runtime/type.ts';
import { addressColumn } from '../../../core/store/db/address-column.ts';
import type { Sql } from '../../../core/store/db/database.ts';
import { rowsOf } from '../../../core/store/db/rows-of.ts';
import { isInUse } from '../../../core/store/ledger/addresses.ts';
import type { Actor } from '../actor.ts';
import { type Column, columnsText, fieldsText } from '../command-words.ts';
import {
  type Field,
  id,
  list,
  maybe,
  number,
  of,
  part,
  type Shown,
  schemaOf,
  show,
  time,
  usdt,
  whole,
  yes,
} from '../fields.ts';
import { clip, FieldError } from '../input/problems.ts';
import { operation } from '../operation.ts';
import { deciding, projectId } from '../option.ts';
import { selectProject } from '../select.ts';
import { about, address } from './addresses.ts';

/** Returns how much of a range is reserved on each active address with the policy, by position, for at most 10,000 addresses. */
export const listReserved = rowsOf(
  'capacity-addresses',
  { address: 'address', position: 'int4', reserved: 'int8' },
  `select ${addressColumn('a')} as address, a.position, taken.count as reserved
   from addresses a
   cross join lateral (
     select count(*) from invoices i
     where i.address_id = a.id and i.payable_micro >= $3 and i.payable_micro < $4) taken
   where a.project_id = $1 and a.policy = $2 and ${isInUse('a.')}
   order by a.position limit 10000`,
  (projectId: string, policy: Policy, { fromMicro, belowMicro }: WordRange) => [
    projectId,
    policy,
    fromMicro,
    belowMicro,
  ],
);

const counted: Field<bigint, number> = { ...whole, show: Number };
/** The free capacity for one requested amount, and how long it will last. */
const ofAmount = {
  ...{ amount: of('requestedMicro', usdt), total: counted, free: counted, freeShare: number },
  ...{ used7Days: counted, used30Days: counted, countedSince: time, perDay7: number, perDay30: number },
  ...{ daysLeft7: maybe(number), daysLeft30: maybe(number), daysLeft: maybe(number), low: of('isLow', yes) },
};
export type AmountCapacityView = Shown<typeof ofAmount>;

/**
 * How each policy affects these amounts. `addedBelow` is in USDT. `decimals` is the number of decimals that payers' wallets must support,
 * or `null` if the price's own decimals are enough.
 */
const compared = {
  ...{ policy: about.policy, perAddress: whole, decimals: maybe(whole), addedBelow: of('addedMicro', usdt) },
  addressesFor90Days: of('for90Days', maybe(whole)),
};
type ComparedPolicyView = Shown<typeof compared>;

const ofProject = {
  ...{ projectId: of('id', id('prj')), network: about.network, policy: about.policy },
  ...{ maxSurcharge: of('maxSurchargeMicro', usdt), activeAddresses: counted, policies: list(part(compared)) },
};
/** `freeShare` is from 0 to 1. `daysLeft` is `null` if nothing has been used. */
const verdict = { low: of('isLow', yes), freeShare: maybe(number), daysLeft: maybe(whole) };
/** The most urgent amounts are listed first. */
const ofAmounts = { ...verdict, amounts: list(part(ofAmount)) };
export type CapacityView = Shown<typeof ofProject & typeof ofAmounts>;

type CapacityDeps = { db: Sql; now(): UnixMs };

export const showCapacity = operation({
  action: 'showCapacity',
  summary: 'Show how many payable amounts are free for each amount in use, and how long they last',
  route: 'GET /capacity',
  command: 'address capacity',
  input: Type.Object({ projectId: projectId() }),
  output: schemaOf({ ...ofProject, ...ofAmounts }),
  run: async (deps: CapacityDeps, actor, { projectId }): Promise<CapacityView> => {
    const { project, capacity } = await measure(deps, actor, projectId);
    const amounts = capacity.amounts.map((each) => countedOf(project, each));
    return { ...viewProject(project, amounts), ...show(ofAmounts, { ...capacity, amounts }) };
  },
  print: (capacity) => {
    const { amounts } = capacity;
    const fields = fieldsText(capacity, [...HEAD, ['verdict', () => verdictOf(capacity, amounts)]]);
    const table = columnsText(amounts, [
      ['AMOUNT', 'amount'],
      ['FREE', 'free'],
      ['OF', 'total'],
      ['FREE %', ({ freeShare }) => percent(freeShare)],
      ['A DAY, 7 DAYS', ({ perDay7 }) => perDay7.toFixed(1)],
      ['A DAY, 30 DAYS', ({ perDay30 }) => perDay30.toFixed(1)],
      ['DAYS LEFT', 'daysLeft'],
      ['', ({ low }) => (low ? 'LOW' : '')],
    ]);
    return { text: [fields, table, compare(capacity)], next: nextOf(capacity) };
  },
});

const onAddress = part({ address, position: whole, total: whole, free: whole });
export type AddressCapacityView = ReturnType<typeof onAddress.show>;
export type CapacityOfAmountView = Shown<typeof ofProject & typeof ofAmount> & { addresses: AddressCapacityView[] };

/** Shows the capacity for one requested amount on each address, for at most 10,000 addresses. */
export const showCapacityOfAmount = operation({
  action: 'showCapacityOfAmount',
  summary: 'Show how many payable amounts are free for one amount, on each address',
  route: 'GET /capacity/:amount',
  command: 'address capacity',
  does: 'show how many payable amounts are free, and how long they last',
  input: Type.Object({
    projectId: projectId(),
    amount: deciding('<usdt>', 'one amount, on each address (default: the amounts in use)'),
  }),
  output: schemaOf({ ...ofProject, ...ofAmount, addresses: list(onAddress) }),
  read: ({ projectId, amount: text }) => {
    const amount = parseAmount(text);
    if (amount.kind === 'ok') return { projectId, amount: amount.amountMicro };
    const reason = `${clip(text)} ${amount.reason}: use an amount in USDT, as in an invoice, such as 25.00`;
    throw new FieldError('amount', reason);
  },
  run: async (deps: CapacityDeps, actor, { projectId, amount }): Promise<CapacityOfAmountView> => {
    const { project, capacity } = await measure(deps, actor, projectId, [amount]);
    const [found] = capacity.amounts;
    if (found === undefined) throw new Error(`no measurement of ${amount}`);
    const range = payableRange(project, amount);
    const total = countPayable(project.policy, range);
    const reserved = await listReserved(deps.db, project.id, project.policy, range);
    const addresses = reserved.map(({ address, position, reserved: taken }) => {
      return { address, position, total: Number(total), free: Number(total > taken ? total - taken : 0n) };
    });
    const { low, freeShare, daysLeft, ...forecast } = show(ofAmount, countedOf(project, found));
    return { ...viewProject(project, [found]), ...{ low, freeShare, daysLeft }, ...forecast, addresses };
  },
  print: (capacity) => {
    const fields = fieldsText(capacity, [
      ...HEAD,
      ['amount', ({ amount }) => `${amount} USDT`],
      ['free', ({ free, total, freeShare }) => `${free} of ${total} (${percent(freeShare)} %)`],
      [
        'used per day',
        ({ perDay7, perDay30 }) => `${perDay7.toFixed(1)} over 7 days, ${perDay30.toFixed(1)} over 30 days`,
      ],
      ['days left', 'daysLeft', 'not used in the last 30 days'],
      ['verdict', () => verdictOf(capacity, [capacity])],
    ]);
    const table = columnsText(capacity.addresses, [
      ['POSITION', 'position'],
      ['ADDRESS', 'address'],
      ['FREE', 'free'],
      ['OF', 'total'],
    ]);
    return { text: [fields, table, compare(capacity)], next: nextOf(capacity) };
  },
});

async function measure(
  { db, now }: CapacityDeps,
  actor: Actor,
  projectId: string | undefined,
  amounts?: readonly MicroUsdt[],
) {
  const { id } = await selectProject(db, actor, projectId);
  const at = now();
  const project = await findCapacityProject(db, id, at);
  if (project === null) throw new Error(`project ${id} disappeared, although projects are never deleted`);
  return { project, capacity: await measureCapacity(db, project, at, amounts) };
}

/** No use can be counted from before the project was created. */
const countedOf = (project: CapacityProject, amount: AmountCapacity) => ({
  ...amount,
  countedSince: unixMs(Math.max(amount.countedSince, project.createdAt)),
});

function viewProject(project: CapacityProject, amounts: readonly AmountCapacity[]): Shown<typeof ofProject> {
  const used = amounts.map(({ requestedMicro, perDay7, perDay30 }) => {
    return { requestedMicro, perDay: Math.max(perDay7, perDay30) };
  });
  return show(ofProject, { ...project, policies: comparePolicies(project, used) });
}

const COMPARED: readonly Column<ComparedPolicyView>[] = [
  ['POLICY', 'policy'],
  ['INVOICES PER AMOUNT AND ADDRESS', 'perAddress'],
  ['MAX SURCHARGE', 'addedBelow'],
  ['DECIMALS TO SEND', 'decimals', "the price's"],
  ['ADDRESSES FOR 90 DAYS', 'addressesFor90Days'],
];

/** Compares the project's policy with the other policies at their usual surcharge limits. */
const compare = ({ policies }: Measured) => columnsText(policies, COMPARED);

type Measured = CapacityView | CapacityOfAmountView;

const HEAD: readonly Column<Measured>[] = [
  ['project', 'projectId'],
  ['policy', ({ policy, maxSurcharge }) => (policy === 'exact' ? policy : `${policy}, less than ${maxSurcharge} USDT`)],
  ['active addresses', 'activeAddresses'],
];

function verdictOf({ activeAddresses, policy, low }: Measured, amounts: readonly AmountCapacityView[]): string {
  if (activeAddresses === 0) return `no active address with the policy ${policy}, so no invoice can be created`;
  if (low) return `LOW: ${whyLow(amounts.filter((amount) => amount.low))}`;
  if (amounts.length === 0) return 'good: no invoices in the last 30 days';
  const isRare = amounts.some(({ daysLeft }) => daysLeft !== null && daysLeft < LOW_DAYS);
  return isRare ? `good: there is no forecast for amounts with fewer than ${USES_OF_A_RATE} uses in 30 days` : 'good';
}

function whyLow(amounts: readonly AmountCapacityView[]): string {
  const gone = amounts.filter(({ free }) => free === 0);
  const scarce = amounts.filter(({ free, total }) => free > 0 && free * 100 < total * Number(LOW_PERCENT));
  const others = amounts.filter((amount) => !gone.includes(amount) && !scarce.includes(amount));
  const parts = [
    [gone, 'no amount is free, so Quittance refuses invoices for'],
    [scarce, `less than ${LOW_PERCENT} % of the amounts are free for`],
    [others, `the free amounts will last less than ${LOW_DAYS} days for`],
  ] as const;
  return parts.flatMap(([found, what]) => (found.length === 0 ? [] : [`${what} ${nameAmounts(found)}`])).join('; ');
}

/** The verdict is one line; the table below it has every amount. */
const MAX_NAMED = 3;

function nameAmounts(amounts: readonly AmountCapacityView[]): string {
  const names = amounts.slice(0, MAX_NAMED).map(({ amount }) => amount);
  const more = amounts.length - names.length;
  return more > 0 ? `${names.join(', ')} and ${more} more` : names.join(', ');
}

const nextOf = ({ projectId, low, activeAddresses }: Measured) =>
  (low || activeAddresses === 0) && say`add addresses with "${{ command: 'address add', input: { projectId } }} T…"`;

/** Rounds down, so 100 is shown only if everything is free. */
function percent(share: number): string {
  return (Math.floor(share * 1000) / 10).toFixed(1);
}

export const operations = [showCapacity, showCapacityOfAmount];
