/** The ways people pay an invoice, right and wrong. The one list of them; it imports nothing, so that showing help stays quick. */
export const SCENARIOS = {
  exact: 'exactly the payable amount',
  short: '1 USDT too little, or half of a smaller amount',
  over: '1 USDT too much',
  twice: 'the payable amount, in two transactions',
  'fake-token': 'the payable amount of another token that calls itself USDT',
  contract: 'the payable amount, by a contract: only a log shows it',
  'two-in-one': 'two invoices in one transaction of a contract',
  orphaned: 'exactly, and then the block leaves the chain again',
  rounded: 'rounded to 2 decimals, or to the nearest other number of decimals that changes it',
  'rounded-3': 'cut off after 3 decimals, as some exchanges do',
  'rounded-4': 'cut off after 4 decimals, as some exchanges do',
  'below-minimum': 'what an exchange sends at least, for the amount is below it: the next of 10, 20, 50, 100, …',
  typo: 'the last digit wrong by one',
  swapped: 'the last two different neighbouring digits swapped',
  fee: 'less a fee of 1 USDT, as an exchange takes it; half of a smaller amount',
  late: 'exactly, after the invoice has expired (its deadline is brought forward)',
  'requested-amount': 'the amount of the order, without the digits that were added to it',
  'to-retired': 'the payable amount, to a retired address of the demo project',
  reverted: 'exactly, from a wallet that has no USDT: the call reverts',
  'out-of-energy': 'exactly, with a fee limit that is too low: the call runs out of energy',
  'zero-value': 'a transfer of 0, as address poisoning sends it',
  'wrong-address': 'the payable amount, to an address that is nobody of ours',
} as const;

export type Scenario = keyof typeof SCENARIOS;

export const SCENARIO_NAMES = Object.keys(SCENARIOS) as readonly Scenario[];

/** Those that need nothing but an address and an amount: the others need an order, or power over the network. */
const OF_AN_ORDER: readonly Scenario[] = ['two-in-one', 'orphaned', 'late', 'requested-amount', 'to-retired'];

export const PLAIN_SCENARIO_NAMES = SCENARIO_NAMES.filter((name) => !OF_AN_ORDER.includes(name));
