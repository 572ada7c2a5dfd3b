import { randomUUID } from 'node:crypto';
import { bytesToHex } from '@noble/hashes/utils.js';
import { FAKE_USDT, MULTISEND, PAYER, USDT } from '@quittance/devnet/evm/keys';
import { createPayer, type Payer, post } from '@quittance/devnet/payer';
import { accountToAddress, parseAddress } from '@quittance/tron/address';
import { AppError, type FieldProblem, invalidArgument } from '../../core/domain/errors.ts';
import { encodeId } from '../../core/domain/ids.ts';
import { formatAmount, microUsdt, parseAmount } from '../../core/domain/money.ts';
import { parseUrl } from '../../core/domain/url.ts';
import { answerOf } from '../../core/store/db/rows-of.ts';
import { clip, fieldProblem } from '../../faces/operator/input/problems.ts';
import { payScenario, type ScenarioOptions, type ScenarioResult } from '../scenarios/pay-scenario.ts';
import { type Scenario, scenarioOf } from '../scenarios/scenarios.ts';
import {
  findPayable,
  letExpire,
  type OrphanedPayment,
  orderInvoice,
  orphanPayment,
  type Payable,
} from './find-payable.ts';
import { type Sandbox, withSandbox } from './sandbox-file.ts';

export type PayOptions = {
  /** An invoice id, a checkout URL, or an external id of the demo project. */
  target: string;
  scenario: Scenario;
  /** The other invoice of `two-in-one`. The default is a new invoice for the same amount. */
  withInvoice: string | null;
};

type PaymentView = {
  scenario: Scenario;
  /** The names of the invoices in messages: the requested one, and the second one in `two-in-one`. */
  invoices: string[];
  sent: SentView[];
  /** Describes the payment and its expected result. */
  outcome: string;
  orphaned?: OrphanedPayment;
};

/** Pays an invoice on the network of a data directory's sandbox, in one of the ways in which people pay. Throws `INVALID_ARGUMENT`. */
export async function payInvoice(dataDir: () => string, options: PayOptions): Promise<PaymentView> {
  const { scenario, withInvoice } = options;
  if (scenario !== 'two-in-one' && withInvoice !== null)
    throw invalidArgument`--with works only with --scenario two-in-one, not with ${scenario}`;
  return withSandbox(dataDir(), (sandbox) => payWith(sandbox, options));
}

/** Like `payInvoice`, but for a sandbox that is already open. */
export async function payWith(sandbox: Sandbox, { target, scenario, withInvoice }: PayOptions): Promise<PaymentView> {
  const invoice = await findPayable(sandbox, target);
  if (scenarioOf(scenario).needs === 'retired address' && sandbox.retiredAddress === null) {
    throw new AppError('SANDBOX_REFUSED', `${scenario} needs a retired address, and the project has none: retire one`);
  }
  const second = scenario === 'two-in-one' ? await findSecond(sandbox, invoice, withInvoice) : null;
  if (scenario === 'late') await letExpire(sandbox.db, invoice);
  const status = await invoice.readStatus();
  const { sent } = await sendPayment(sandbox, scenario, invoice, second);
  const shown = sent.map(showSent);
  const view = {
    scenario,
    invoices: [invoice, ...(second === null ? [] : [second])].map(({ reference }) => reference),
    sent: shown,
  };
  if (scenario === 'orphaned') {
    const orphaned = await orphanPayment(sandbox, invoice, sent[0]?.txId ?? '');
    return { ...view, outcome: describeOrphaned(orphaned), orphaned };
  }
  const outcome = scenarioOf(scenario).outcome({
    payable: formatAmount(invoice.payableMicro),
    sent: shown[0]?.amount ?? '',
    hasPayment: status === 'CONFIRMING' || status === 'PAID',
    hit: await findHit(sandbox, invoice, sent[0]),
  });
  return { ...view, outcome };
}

/** Describes an orphaned payment in one sentence. */
function describeOrphaned({ blockNumber, blocks, wasConfirming }: OrphanedPayment): string {
  const seen = wasConfirming ? 'the invoice became CONFIRMING' : 'the invoice did not become CONFIRMING in time';
  const branch = blocks === 1 ? `block ${blockNumber}` : `block ${blockNumber} and the blocks after it`;
  return `the exact payable amount was sent, and ${seen}. Then the network orphaned ${branch}, so the payment no longer exists. The invoice becomes PENDING again, or EXPIRED if its deadline has passed`;
}

/** Finds another invoice that was paid by mistake: with the policy `exact`, a wrong amount may be another invoice's price. */
async function findHit(
  { db }: Sandbox,
  { address, payableMicro }: Payable,
  sent: { to: string; amountMicro: bigint } | undefined,
): Promise<string | null> {
  if (sent === undefined || (sent.to === address && sent.amountMicro === payableMicro)) return null;
  const id = await findInvoiceOfAmount(db, sent.to, sent.amountMicro);
  return id === null ? null : encodeId('inv', id);
}

/** Sends a scenario's transfers without waiting for the result. Throws the errors of `sendOnDevnet`. */
export async function sendPayment(sandbox: Sandbox, scenario: Scenario, invoice: Payable, second: Payable | null) {
  const toTarget = ({ address, payableMicro }: Payable) => ({ address, amountMicro: payableMicro });
  return sendOnDevnet(createPayer({ nodeUrl: sandbox.nodeUrl, privateKey: sandbox.payer.privateKey }), {
    scenario,
    invoice: toTarget(invoice),
    requestedMicro: invoice.requestedMicro,
    ...(sandbox.retiredAddress === null ? {} : { retiredAddress: sandbox.retiredAddress }),
    ...(second === null ? {} : { second: toTarget(second) }),
  });
}

async function findSecond(sandbox: Sandbox, first: Payable, named: string | null): Promise<Payable> {
  if (named !== null) return findPayable(sandbox, named);
  const amount = formatAmount(first.requestedMicro);
  const made = await orderInvoice(sandbox, { amount, externalId: `two-in-one-${randomUUID()}` });
  // A conflict also returns an id, but it's the existing invoice's.
  if (made.status === 201 && made.invoiceId !== undefined) return findPayable(sandbox, made.invoiceId);
  throw new AppError('SANDBOX_REFUSED', `the second invoice could not be created: ${made.detail ?? made.status}`);
}

/** Returns the UUID of the invoice that has reserved exactly this amount at this address on a local network. */
const findInvoiceOfAmount = answerOf(
  'sandbox-invoice-of-amount',
  { id: 'uuid' },
  `select i.id from addresses a join invoices i on i.address_id = a.id and i.payable_micro = $2
   where a.network = 'devnet' and a.address = $1`,
  (address: string, amountMicro: bigint) => [address, amountMicro],
  ([row]) => row?.id ?? null,
);

type SentView = { txId: string; to: string; amount: string; contract: string };

function showSent({ txId, to, amountMicro, contract }: ScenarioResult['sent'][number]): SentView {
  return { txId, to, amount: formatAmount(microUsdt(amountMicro)), contract };
}

const CONTRACTS = {
  usdt: accountToAddress(USDT),
  fakeUsdt: accountToAddress(FAKE_USDT),
  multisend: accountToAddress(MULTISEND),
};

/** Throws `INVALID_ARGUMENT` if the amount is too small for the scenario's mistake. */
function sendOnDevnet(payer: Payer, options: Omit<ScenarioOptions, 'contracts'>): Promise<ScenarioResult> {
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
