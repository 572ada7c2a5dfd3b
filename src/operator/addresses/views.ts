import { NETWORKS } from '../../domain/network.ts';
import { POLICIES } from '../../domain/policy.ts';
import { type Static, Type } from '../../runtime/type.ts';
import type { Freeze } from '../../store/ledger/addresses.ts';
import type { TronAddress } from '../../tron/address.ts';
import { AddressChangeView } from '../address-changes/views.ts';
import { ReconciledAddress } from '../chain/views.ts';
import { activeAddresses } from '../subjects/projects.ts';
import { nullable, Time } from '../view.ts';

const ActiveAddresses = Type.Unsafe<ReturnType<typeof activeAddresses.show>>(activeAddresses.schema);
const Address = Type.Unsafe<TronAddress>(Type.String());
const Addresses = Type.Array(Address);
const policy = Type.Enum([...POLICIES]);
const Project = { projectId: Type.String(), network: Type.Enum([...NETWORKS]) };
/** From 0 on; people count from 1. */
const Derived = { address: Address, derivationIndex: Type.Integer() };

/** The answers of nodes about added addresses. */
export const ActivationView = Type.Object({
  checked: Type.Integer(),
  neverActivated: Addresses,
  contracts: Addresses,
  notCheckedBecause: nullable(Type.String()),
});
export type ActivationView = Static<typeof ActivationView>;

export const AddedAddressesView = Type.Object({
  ...Project,
  policy,
  added: Addresses,
  activation: nullable(ActivationView),
});
export type AddedAddressesView = Static<typeof AddedAddressesView>;

/** `proposed`: what waits for another owner, or for its time. */
export const ProposedAddressesView = Type.Object({
  ...Project,
  policy,
  proposed: AddressChangeView,
  activation: nullable(ActivationView),
});
export type ProposedAddressesView = Static<typeof ProposedAddressesView>;

/** `skipped`: addresses of the key that `projectId` has already. */
export const DerivedAddressesView = Type.Object({
  ...Project,
  policy,
  added: Type.Array(Type.Object(Derived)),
  skipped: Type.Array(Type.Object({ ...Derived, projectId: Type.String() })),
});
export type DerivedAddressesView = Static<typeof DerivedAddressesView>;

/** What a key would add next. `first`: its first three, without the end of #1. */
export const DerivationView = Type.Object({
  projectId: Type.String(),
  isStored: Type.Boolean(),
  first: Type.Array(Type.String()),
  next: Type.Array(Type.Object(Derived)),
  skipped: Type.Array(Type.Object({ ...Derived, projectId: Type.String() })),
});
export type DerivationView = Static<typeof DerivationView>;

export const AutoLimitView = Type.Object({
  ...Project,
  autoDerived: Type.Integer(),
  autoDeriveLimit: Type.Integer(),
});
export type AutoLimitView = Static<typeof AutoLimitView>;

const Status = Type.Enum(['active', 'retired']);

/** `blocked`: retired for good. `frozen`: by Tether. `unfrozen`: Tether let it go, and nobody has taken it into use again. */
const LifeStatus = Type.Enum(['active', 'retired', 'blocked', 'frozen', 'unfrozen']);

type Life = { retiredAt: number | null; barredAt?: number | null; freezeState: Freeze | null };

export function lifeStatusOf({ retiredAt, barredAt = null, freezeState }: Life): Static<typeof LifeStatus> {
  if (barredAt !== null) return 'blocked';
  if (retiredAt !== null) return 'retired';
  if (freezeState === null) return 'active';
  return freezeState === 'lifted' ? 'unfrozen' : 'frozen';
}

export const ListedAddressView = Type.Object({
  address: Address,
  policy,
  position: Type.Integer(),
  status: LifeStatus,
  derivationIndex: nullable(Type.Integer()),
  createdAt: Time,
  retiredAt: nullable(Time),
});
export type ListedAddressView = Static<typeof ListedAddressView>;

export const AddressListView = Type.Object({
  projectId: Type.String(),
  policy,
  activeAddresses: ActiveAddresses,
  data: Type.Array(ListedAddressView),
});
export type AddressListView = Static<typeof AddressListView>;

/** `unchanged`: those that had the status before. */
export const SwitchedAddressesView = Type.Object({
  projectId: Type.String(),
  status: Status,
  changed: Addresses,
  unchanged: Addresses,
  activeAddresses: ActiveAddresses,
});
export type SwitchedAddressesView = Static<typeof SwitchedAddressesView>;

/** `freeShare`: 0 to 1. `daysLeft`: `null` where nothing was used. */
const Verdict = {
  low: Type.Boolean(),
  freeShare: nullable(Type.Number()),
  daysLeft: nullable(Type.Integer()),
};

/** The free capacity of one requested amount, and how long it lasts. */
export const AmountCapacityView = Type.Object({
  amount: Type.String(),
  total: Type.Integer(),
  free: Type.Integer(),
  freeShare: Type.Number(),
  used7Days: Type.Integer(),
  used30Days: Type.Integer(),
  countedSince: Time,
  perDay7: Type.Number(),
  perDay30: Type.Number(),
  daysLeft7: nullable(Type.Number()),
  daysLeft30: nullable(Type.Number()),
  daysLeft: nullable(Type.Number()),
  low: Type.Boolean(),
});
export type AmountCapacityView = Static<typeof AmountCapacityView>;

/** What each policy would make of these amounts; `addedBelow` is USDT. `decimals`: that payers must be able to send; `null`: those of the price. */
const ComparedPolicyView = Type.Object({
  policy,
  perAddress: Type.Integer(),
  addedBelow: Type.String(),
  decimals: nullable(Type.Integer()),
  addressesFor90Days: nullable(Type.Integer()),
});
export type ComparedPolicyView = Static<typeof ComparedPolicyView>;

const Of = {
  ...{ ...Project, policy, maxSurcharge: Type.String(), activeAddresses: Type.Integer() },
  policies: Type.Array(ComparedPolicyView),
};

/** The capacity of the amounts in use, the most urgent first. */
export const CapacityView = Type.Object({ ...Of, ...Verdict, amounts: Type.Array(AmountCapacityView) });
export type CapacityView = Static<typeof CapacityView>;

export const AddressCapacityView = Type.Object({
  address: Address,
  position: Type.Integer(),
  total: Type.Integer(),
  free: Type.Integer(),
});
export type AddressCapacityView = Static<typeof AddressCapacityView>;

/** The capacity of one amount, also on each address. */
export const CapacityOfAmountView = Type.Interface([Type.Object(Of), AmountCapacityView], {
  addresses: Type.Array(AddressCapacityView),
});
export type CapacityOfAmountView = Static<typeof CapacityOfAmountView>;

/** `ledger`: opening, and what came and left since; `null` where the sums took too long. `chain`: as it was last compared. `isSigned`: `null` where it need not be. */
export const BalanceView = Type.Object({
  address: Address,
  policy,
  position: Type.Integer(),
  status: LifeStatus,
  derivationIndex: nullable(Type.Integer()),
  createdAt: Time,
  retiredAt: nullable(Time),
  isSigned: nullable(Type.Boolean()),
  ledger: nullable(Type.String()),
  /** The last comparison: what the chain and the ledger said at the same block. `ledger` beside it is of now. */
  chain: nullable(
    Type.Object({
      ...{ balance: Type.String(), ledger: Type.String(), block: Type.Integer() },
      ...{ isSame: Type.Boolean(), checkedAt: Time },
    }),
  ),
});
export type BalanceView = Static<typeof BalanceView>;

/** `next`: the position behind which the next page begins. */
export const BalanceListView = Type.Object({
  ...Project,
  policy,
  data: Type.Array(BalanceView),
  next: nullable(Type.Integer()),
});
export type BalanceListView = Static<typeof BalanceListView>;

/** `skipped`: those that were compared a moment ago. */
export const ComparedBalancesView = Type.Object({
  ...Project,
  node: nullable(Type.String()),
  data: Type.Array(ReconciledAddress),
  skipped: Addresses,
});
export type ComparedBalancesView = Static<typeof ComparedBalancesView>;

/** `openInvoices`: `null` where counting took too long. */
export const AddressView = Type.Object({
  ...Project,
  address: Address,
  policy,
  status: LifeStatus,
  retiredAt: nullable(Time),
  openInvoices: nullable(Type.Integer()),
  isOpenInvoicesMore: Type.Boolean(),
  projectPolicy: policy,
  activeAddresses: ActiveAddresses,
});
export type AddressView = Static<typeof AddressView>;
