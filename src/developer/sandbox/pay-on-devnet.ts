import { bytesToHex } from '@noble/hashes/utils.js';
import { FAKE_USDT, MULTISEND, PAYER, USDT } from '@quittance/devnet/evm/keys';
import { createPayer, type Payer, post } from '@quittance/devnet/payer';
import { accountToAddress, parseAddress } from '@quittance/tron/address';
import { AppError, type FieldProblem } from '../../core/domain/errors.ts';
import { formatAmount, microUsdt, parseAmount } from '../../core/domain/money.ts';
import { parseUrl } from '../../core/domain/url.ts';
import { clip, fieldProblem } from '../../faces/operator/input/problems.ts';
import { payScenario, type ScenarioOptions, type ScenarioResult } from '../scenarios/pay-scenario.ts';
import { type Scenario, scenarioOf } from '../scenarios/scenarios.ts';

export type SentView = { txId: string; to: string; amount: string; contract: string };

export function showSent({ txId, to, amountMicro, contract }: ScenarioResult['sent'][number]): SentView {
  return { txId, to, amount: formatAmount(microUsdt(amountMicro)), contract };
}

const CONTRACTS = {
  usdt: accountToAddress(USDT),
  fakeUsdt: accountToAddress(FAKE_USDT),
  multisend: accountToAddress(MULTISEND),
};

/** Throws `INVALID_ARGUMENT` if the amount is too small for the scenario's mistake. */
export function sendOnDevnet(payer: Payer, options: Omit<ScenarioOptions, 'contracts'>): Promise<ScenarioResult> {
  return payScenario(payer, { ...options, contracts: CONTRACTS }).catch((error: unknown) => {
    if (!(error instanceof RangeError)) throw error;
    const amount = formatAmount(microUsdt(options.invoice.amountMicro));
    throw new AppError(
      'INVALID_ARGUMENT',
      `${options.scenario} has no effect on an invoice of ${amount} USDT: choose another scenario or another amount`,
      { cause: error },
    );
  });
}

export type DevnetPaymentInput = { address: string; amount: string; scenario: Scenario; node: string };

/**
 * Pays an address on the local network at `node`, from the wallet that every local network has. Throws `INVALID_ARGUMENT` with all problems
 * at once, or `SERVER_UNAVAILABLE`.
 */
export async function payOnDevnet({ address, amount, scenario, node }: DevnetPaymentInput) {
  const problems: FieldProblem[] = [];
  const refuse = (subject: string, message: string) => problems.push({ subject, message });
  const target = parseAddress(address);
  if (target.kind !== 'ok') refuse('address', `the address ${clip(address)}: ${target.reason}`);
  const read = parseAmount(amount);
  if (read.kind !== 'ok') refuse('amount', `the amount ${clip(amount)} ${read.reason}`);
  if (!/^https?:$/.test(parseUrl(node)?.protocol ?? '')) {
    problems.push(fieldProblem('node', `is ${clip(node)}: use the HTTP URL that "quittance devnet" prints`));
  }
  if (target.kind !== 'ok' || read.kind !== 'ok' || problems.length > 0)
    throw new AppError('INVALID_ARGUMENT', 'nothing was paid', { problems });
  const payer = createPayer({
    nodeUrl: node,
    privateKey: bytesToHex(PAYER.privateKey),
    // The irreversible state has its own port, which differs between networks. For a rehearsal, the newest state will do.
    ask: (path, body) => post(node, path.replace('/walletsolidity/', '/wallet/'), body),
  });
  const { sent } = await sendOnDevnet(payer, { scenario, invoice: { address, amountMicro: read.amountMicro } }).catch(
    (error: unknown) => {
      if (error instanceof AppError) throw error;
      const reason = error instanceof Error ? error.message : String(error);
      const fix = 'run "quittance devnet", or set the HTTP URL of its node with --node';
      throw new AppError('SERVER_UNAVAILABLE', `${reason}; ${fix}`, { cause: error });
    },
  );
  const shown = sent.map(showSent);
  const payable = formatAmount(read.amountMicro);
  const facts = { payable, sent: shown[0]?.amount ?? '', hasPayment: false, hit: null };
  return { scenario, sent: shown, outcome: scenarioOf(scenario).outcome(facts) };
}
