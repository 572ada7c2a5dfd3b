import { bytesToHex } from '@noble/hashes/utils.js';
import { PENNILESS, STRANGER } from '@quittance/devnet/evm/keys';
import type { Payer } from '@quittance/devnet/payer';
import { accountToAddress } from '@quittance/tron/address';
import { type Scenario, scenarioOf } from './scenarios.ts';

type PaymentTarget = Readonly<{ address: string; amountMicro: bigint }>;

export interface ScenarioOptions {
  readonly scenario: Scenario;
  /** The contract addresses on the devnet. */
  readonly contracts: { readonly usdt: string; readonly fakeUsdt: string; readonly multisend: string };
  readonly invoice: PaymentTarget;
  /** The other invoice that `two-in-one` pays. */
  readonly second?: PaymentTarget;
  /** The order's requested amount, which `requested-amount` sends. */
  readonly requestedMicro?: bigint;
  /** The address that `to-retired` pays. */
  readonly retiredAddress?: string;
}

/** A transfer that a wallet sent. Each recipient has one, in order, even if the call then fails on the chain. */
type SentTransfer = Readonly<{ txId: string; contract: string; to: string; amountMicro: bigint }>;

export type ScenarioResult = Readonly<{ txIds: readonly string[]; sent: readonly SentTransfer[] }>;

/** 1 TRX buys 10,000 units of energy, and a transfer needs at least 64,285. */
const LOW_FEE_LIMIT_SUN = 1_000_000n;

/**
 * Pays an invoice as the scenario describes (see `scenarios.ts`). For the scenario `orphaned`, the caller makes the network orphan the
 * payment's block. For `late`, the caller lets the invoice expire first. Throws a TypeError if a required option of the scenario is
 * missing, and a RangeError if the amount leaves no room for the scenario's mistake.
 */
export async function payScenario(payer: Payer, options: ScenarioOptions): Promise<ScenarioResult> {
  const { scenario, contracts, invoice, second } = options;
  const { by, to, needs } = scenarioOf(scenario);
  const target = {
    address: to === 'stranger' ? accountToAddress(STRANGER) : invoice.address,
    amountMicro: amountOf(options),
  };
  if (needs === 'retired address') target.address = given(options.retiredAddress, needs, scenario);
  switch (by) {
    case 'two transactions':
      return transfers(payer, contracts.usdt, [target, target]);
    case 'another token':
      return transfers(payer, contracts.fakeUsdt, [target]);
    case 'contract':
      return together(payer, contracts, needs === undefined ? [target] : [target, given(second, needs, scenario)]);
    case 'wallet without USDT':
      return transfers(payer.withKey(bytesToHex(PENNILESS.privateKey)), contracts.usdt, [target]);
    case 'low fee limit':
      return transfers(payer, contracts.usdt, [target], LOW_FEE_LIMIT_SUN);
  }
  return transfers(payer, contracts.usdt, [target]);
}

function amountOf({ scenario, invoice: { amountMicro }, requestedMicro }: ScenarioOptions): bigint {
  const { needs, amountOf = (payable) => payable } = scenarioOf(scenario);
  const mistake = needs === 'requested amount' ? given(requestedMicro, needs, scenario) : amountOf(amountMicro);
  if (mistake !== null && (needs !== 'requested amount' || mistake !== amountMicro)) return mistake;
  throw new RangeError(`an invoice of ${amountMicro} micro-USDT leaves no room for the scenario ${scenario}`);
}

function given<Value>(value: Value | undefined, what: string, scenario: Scenario): Value {
  if (value !== undefined) return value;
  throw new TypeError(`the scenario ${scenario} needs a ${what}`);
}

async function transfers(
  payer: Payer,
  contract: string,
  targets: readonly PaymentTarget[],
  feeLimitSun?: bigint,
): Promise<ScenarioResult> {
  const sent: SentTransfer[] = [];
  for (const { address, amountMicro } of targets) {
    const limit = feeLimitSun === undefined ? {} : { feeLimitSun };
    const txId = await payer.transfer({ contract, to: address, amountMicro, ...limit });
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
