import { FAKE_USDT, MULTISEND } from '../../devnet/keys.ts';
import { type PaymentTarget, payScenario, type ScenarioResult } from '../../devnet/pay-scenario.ts';
import { createPayer } from '../../devnet/payer.ts';
import type { Scenario } from '../../devnet/scenarios.ts';
import { encodeId } from '../../domain/ids.ts';
import { formatAmount, microUsdt } from '../../domain/money.ts';
import { systemClock } from '../../runtime/clock.ts';
import type { Database } from '../../store/database.ts';
import { findInvoiceOfAmount } from '../../store/sandbox.ts';
import { accountToAddress } from '../../tron/address.ts';
import { CliError } from '../cli-error.ts';
import type { Terminal } from '../terminal.ts';
import { describeOrphaned, describePayment } from './describe-payment.ts';
import { createAlike, findPayable, type Payable } from './find-payable.ts';
import { letExpire } from './let-expire.ts';
import { orphanPayment } from './orphan-payment.ts';
import type { SandboxFile } from './sandbox-file.ts';
import { withSandbox } from './with-sandbox.ts';

export type SandboxPayOptions = {
  dataDir: string;
  /** An invoice id, a checkout URL, or an external id of the demo project. */
  target: string;
  scenario: Scenario;
  /** The other invoice of `two-in-one`; by default a new one of the same amount. */
  withInvoice: string | null;
};

/** Pays an invoice on the running sandbox's network, in one of the ways that people pay. Prints what was sent, and what will come of it. */
export async function sandboxPay(terminal: Terminal, options: SandboxPayOptions): Promise<void> {
  await withSandbox(options.dataDir, (db, sandbox) => payWith(db, sandbox, terminal, options));
}

async function payWith(
  db: Database,
  sandbox: SandboxFile,
  terminal: Terminal,
  { target, scenario, withInvoice }: SandboxPayOptions,
): Promise<void> {
  const invoice = await findPayable(db, sandbox, target);
  const second = scenario === 'two-in-one' ? await findSecond(db, sandbox, invoice, withInvoice) : null;
  if (scenario === 'late') await letExpire(db, invoice);
  const status = await invoice.readStatus();
  const { sent } = await sendPayment(sandbox, scenario, invoice, second);
  const orphaned =
    scenario === 'orphaned'
      ? await orphanPayment({
          nodeUrl: sandbox.nodeUrl,
          txId: sent[0]?.txId ?? '',
          isConfirming: async () => (await invoice.readStatus()) === 'CONFIRMING',
        })
      : null;
  const shown = sent.map(({ txId, to, amountMicro, contract }) => ({
    txId,
    to,
    amount: formatAmount(microUsdt(amountMicro)),
    contract,
  }));
  const outcome =
    orphaned === null
      ? describePayment(scenario, {
          payable: formatAmount(invoice.payableMicro),
          sent: shown[0]?.amount ?? '',
          hasPayment: status === 'CONFIRMING' || status === 'PAID',
          hit: await findHit(db, invoice, sent[0]),
        })
      : describeOrphaned(orphaned);
  const invoices = [invoice, ...(second === null ? [] : [second])].map(({ reference }) => reference);
  terminal.print({
    data: { scenario, invoices, sent: shown, outcome, ...(orphaned === null ? {} : { orphaned }) },
    text: [
      ...shown.map(({ txId, to, amount }) => `sent ${amount} to ${to} in transaction ${txId}`),
      ...(second === null ? [] : [`the second invoice is ${second.reference}`]),
      outcome,
    ].join('\n'),
  });
}

/** Another invoice that was hit by mistake: with the policy exact, a wrong amount may be another's price. */
async function findHit(
  db: Database,
  { address, payableMicro }: Payable,
  sent: { to: string; amountMicro: bigint } | undefined,
): Promise<string | null> {
  if (sent === undefined || (sent.to === address && sent.amountMicro === payableMicro)) return null;
  const id = await findInvoiceOfAmount(db, sent.to, sent.amountMicro);
  return id === null ? null : encodeId('inv', id);
}

/** Sends what a scenario sends; what comes of it is not waited for. Error: `INVALID_ARGUMENT` for an amount without room for it. */
export async function sendPayment(
  sandbox: SandboxFile,
  scenario: Scenario,
  invoice: Payable,
  second: Payable | null,
): Promise<ScenarioResult> {
  const payer = createPayer({ nodeUrl: sandbox.nodeUrl, privateKey: sandbox.payer.privateKey });
  return payScenario(payer, {
    scenario,
    contracts: {
      usdt: sandbox.usdtContract,
      fakeUsdt: accountToAddress(FAKE_USDT),
      multisend: accountToAddress(MULTISEND),
    },
    invoice: toTarget(invoice),
    requestedMicro: invoice.requestedMicro,
    retiredAddress: sandbox.retiredAddress,
    ...(second === null ? {} : { second: toTarget(second) }),
  }).catch((error: unknown) => {
    if (!(error instanceof RangeError)) throw error;
    const amount = formatAmount(invoice.payableMicro);
    throw new CliError(
      'INVALID_ARGUMENT',
      `${scenario} makes no difference to an invoice of ${amount} USDT: choose another scenario or another amount`,
      { cause: error },
    );
  });
}

function toTarget({ address, payableMicro }: Payable): PaymentTarget {
  return { address, amountMicro: payableMicro };
}

async function findSecond(db: Database, sandbox: SandboxFile, first: Payable, named: string | null): Promise<Payable> {
  if (named !== null) return findPayable(db, sandbox, named);
  return createAlike(db, sandbox, first, `two-in-one-${systemClock.now()}`);
}
