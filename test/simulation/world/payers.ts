import { bytesToHex } from '@noble/hashes/utils.js';
import { FAKE_USDT, MULTISEND, PAYER, USDT } from '@quittance/devnet/evm/keys';
import { createPayer } from '@quittance/devnet/payer';
import { type AccountHex, accountToAddress } from '@quittance/tron/address';
import { payScenario } from '../../../src/developer/scenarios/pay-scenario.ts';
import type { Scenario } from '../../../src/developer/scenarios/scenarios.ts';
import type { Random } from '../engine/random.ts';
import type { Owner, VirtualTime } from '../engine/virtual-time.ts';
import type { Acknowledged } from '../truth.ts';

/** The ways in which people pay, wrongly more often than in reality; most pay exactly. */
const WAYS: readonly Scenario[] = [
  ...Array.from({ length: 10 }, () => 'exact' as const),
  'contract',
  'contract',
  'twice',
  'two-in-one',
  'late',
  'late',
  'short',
  'over',
  'rounded',
  'rounded-3',
  'rounded-4',
  'below-minimum',
  'typo',
  'swapped',
  'fee',
  'requested-amount',
  'fake-token',
  'reverted',
  'out-of-energy',
  'zero-value',
  'wrong-address',
];

/** People who pay, each invoice once, in their own time, and some of them wrongly. */
export function createPayers({
  time,
  world,
  random,
  ask,
}: {
  time: VirtualTime;
  world: Owner;
  random: Random;
  /** A wallet's requests to its node. */
  ask(path: string, body: object): Promise<object>;
}) {
  const contracts = {
    usdt: accountToAddress(USDT),
    fakeUsdt: accountToAddress(FAKE_USDT),
    multisend: accountToAddress(MULTISEND),
  };
  const wallet = createPayer({
    nodeUrl: 'http://wallet.test',
    privateKey: bytesToHex(PAYER.privateKey),
    ask,
    now: () => Math.floor(time.nowMs()),
  });
  const targetOf = ({ account, payableMicro }: Acknowledged) => ({
    address: accountToAddress(account),
    amountMicro: payableMicro,
  });
  return {
    /** Sends an amount that no order asks for. */
    send: (to: AccountHex, amountMicro: bigint) =>
      wallet.transfer({ contract: contracts.usdt, to: accountToAddress(to), amountMicro }),
    /** Pays after a while, or not at all. `others` are invoices that `two-in-one` may pay as well. */
    pay: async (reported: Acknowledged, others: readonly Acknowledged[]): Promise<void> => {
      if (random.chance(0.12)) return;
      const scenario = random.pick(WAYS);
      const untilExpiryMs = reported.expiresAt - time.nowMs();
      // Sometimes close to the deadline, where a second decides.
      const waitMs =
        scenario === 'late'
          ? untilExpiryMs + random.between(-30_000, 600_000)
          : random.pick([random.between(1000, 120_000), random.between(0, Math.max(1000, untilExpiryMs))]);
      await time.sleep(world, Math.max(0, waitMs));
      const second = targetOf(random.pick(others));
      const { requestedMicro } = reported;
      try {
        await payScenario(wallet, {
          scenario,
          contracts,
          invoice: targetOf(reported),
          second,
          requestedMicro,
        });
      } catch {
        // The wallet reports the error, and the person hasn't paid.
      }
    },
  };
}
