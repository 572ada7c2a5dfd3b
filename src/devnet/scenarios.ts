import type { Payer } from './payer.ts';

/** The ways people pay an invoice, right and wrong. */
export const SCENARIOS = [
  'exact',
  'short',
  'over',
  'twice',
  'fake-token',
  'contract',
  'two-in-one',
  'orphaned',
] as const;

export type Scenario = (typeof SCENARIOS)[number];

export interface PaymentTarget {
  readonly address: string;
  readonly amountMicro: bigint;
}

export interface ScenarioOptions {
  readonly scenario: Scenario;
  /** Addresses of the contracts, as a devnet names them. */
  readonly contracts: { readonly usdt: string; readonly fakeUsdt: string; readonly multisend: string };
  readonly invoice: PaymentTarget;
  /** The other invoice that `two-in-one` pays. */
  readonly second?: PaymentTarget;
}

/** What was sent: one entry per Transfer event, in order. */
interface SentTransfer {
  readonly txId: string;
  readonly contract: string;
  readonly to: string;
  readonly amountMicro: bigint;
}

export interface ScenarioResult {
  readonly txIds: readonly string[];
  readonly sent: readonly SentTransfer[];
}

const ONE_USDT = 1_000_000n;

/**
 * Pays an invoice in the way the scenario names. `short` is one USDT too little, or half where that would leave nothing; `over`
 * is one USDT too much; `twice` are two transactions; `contract` goes through the multisend contract, where only the log shows
 * the payment; `two-in-one` pays both invoices in one transaction; `orphaned` pays exactly, and
 * the caller has the network orphan the block.
 */
export async function payScenario(
  payer: Payer,
  { scenario, contracts, invoice, second }: ScenarioOptions,
): Promise<ScenarioResult> {
  const { address, amountMicro } = invoice;
  switch (scenario) {
    case 'exact':
    case 'orphaned':
      return transfers(payer, contracts.usdt, [invoice]);
    case 'short':
      return transfers(payer, contracts.usdt, [{ address, amountMicro: shortOf(amountMicro) }]);
    case 'over':
      return transfers(payer, contracts.usdt, [{ address, amountMicro: amountMicro + ONE_USDT }]);
    case 'twice':
      return transfers(payer, contracts.usdt, [invoice, invoice]);
    case 'fake-token':
      return transfers(payer, contracts.fakeUsdt, [invoice]);
    case 'contract':
      return together(payer, contracts, [invoice]);
    case 'two-in-one':
      if (second === undefined) throw new TypeError('the scenario two-in-one needs a second invoice to pay');
      return together(payer, contracts, [invoice, second]);
  }
}

function shortOf(amountMicro: bigint): bigint {
  if (amountMicro < 2n) throw new RangeError(`${amountMicro} micro cannot be paid short: less is nothing`);
  return amountMicro > ONE_USDT ? amountMicro - ONE_USDT : amountMicro >> 1n;
}

async function transfers(payer: Payer, contract: string, targets: readonly PaymentTarget[]): Promise<ScenarioResult> {
  const sent: SentTransfer[] = [];
  for (const { address, amountMicro } of targets) {
    const txId = await payer.transfer({ contract, to: address, amountMicro });
    sent.push({ txId, contract, to: address, amountMicro });
  }
  return { txIds: sent.map(({ txId }) => txId), sent };
}

async function together(
  payer: Payer,
  contracts: ScenarioOptions['contracts'],
  targets: readonly PaymentTarget[],
): Promise<ScenarioResult> {
  const txId = await payer.multisend({
    multisendContract: contracts.multisend,
    token: contracts.usdt,
    transfers: targets.map(({ address, amountMicro }) => ({ to: address, amountMicro })),
  });
  const sent = targets.map(({ address, amountMicro }) => ({
    txId,
    contract: contracts.usdt,
    to: address,
    amountMicro,
  }));
  return { txIds: [txId], sent };
}
