import { request } from 'undici';
import { FAKE_USDT, MULTISEND } from '../../devnet/keys.ts';
import { createPayer } from '../../devnet/payer.ts';
import { type PaymentTarget, payScenario, SCENARIOS, type Scenario } from '../../devnet/scenarios.ts';
import { AppError } from '../../domain/errors.ts';
import { formatAmount, microUsdt, parseAmount } from '../../domain/money.ts';
import { accountToAddress } from '../../tron/address.ts';
import { CliError } from '../cli-error.ts';
import type { Terminal } from '../terminal.ts';
import { type OrphanedPayment, orphanPayment } from './orphan-payment.ts';
import { readSandboxFile, type SandboxFile } from './sandbox-file.ts';

export type SandboxPayOptions = {
  dataDir: string;
  /** An invoice id, a checkout URL, or an external id of the demo project. */
  target: string;
  scenario: string;
  /** The other invoice of `two-in-one`; by default a new one of the same amount. */
  withInvoice: string | null;
};

type Payable = PaymentTarget & { reference: string; isConfirming: () => Promise<boolean> };

/** Pays an invoice on the running sandbox's network, in one of the ways that people pay. Prints what was sent. */
export async function sandboxPay(terminal: Terminal, options: SandboxPayOptions): Promise<void> {
  const scenario = readScenario(options.scenario);
  const sandbox = await readSandboxFile(options.dataDir);
  const invoice = await findPayable(sandbox, options.target);
  const second = scenario === 'two-in-one' ? await findSecond(sandbox, invoice, options.withInvoice) : null;
  const payer = createPayer({ nodeUrl: sandbox.nodeUrl, privateKey: sandbox.payer.privateKey });
  const { sent } = await payScenario(payer, {
    scenario,
    contracts: {
      usdt: sandbox.usdtContract,
      fakeUsdt: accountToAddress(FAKE_USDT),
      multisend: accountToAddress(MULTISEND),
    },
    invoice,
    ...(second === null ? {} : { second }),
  });
  const orphaned = scenario === 'orphaned' ? await orphanSent(sandbox, invoice, sent[0]?.txId ?? '') : null;
  const shown = sent.map(({ txId, to, amountMicro, contract }) => ({
    txId,
    to,
    amount: formatAmount(microUsdt(amountMicro)),
    contract,
  }));
  const invoices = [invoice, ...(second === null ? [] : [second])].map(({ reference }) => reference);
  terminal.print({
    data: { scenario, invoices, sent: shown, ...(orphaned === null ? {} : { orphaned }) },
    text: [
      ...shown.map(({ txId, to, amount }) => `sent ${amount} to ${to} in transaction ${txId}`),
      ...(orphaned === null ? [] : [describeOrphaned(orphaned)]),
      ...(second === null ? [] : [`the second invoice is ${second.reference}`]),
    ].join('\n'),
  });
}

function orphanSent({ nodeUrl }: SandboxFile, { isConfirming }: Payable, txId: string): Promise<OrphanedPayment> {
  return orphanPayment({ nodeUrl, txId, isConfirming });
}

function describeOrphaned({ blockNumber, blocks, wasConfirming }: OrphanedPayment): string {
  const seen = wasConfirming ? 'the invoice became CONFIRMING' : 'the invoice was not seen CONFIRMING in time';
  const branch = blocks === 1 ? `block ${blockNumber}` : `block ${blockNumber} and what followed it`;
  return `${seen}; then the network orphaned ${branch}, and the payment is gone: the invoice goes back to PENDING, or EXPIRED if its time is over`;
}

function readScenario(text: string): Scenario {
  const scenario = SCENARIOS.find((known) => known === text);
  if (scenario !== undefined) return scenario;
  throw new CliError('INVALID_ARGUMENT', `there is no scenario ${text}: choose one of ${SCENARIOS.join(', ')}`);
}

async function findPayable(sandbox: SandboxFile, target: string): Promise<Payable> {
  const token = /\/c\/([^/?#]+)/.exec(target)?.[1];
  if (token !== undefined) {
    const readView = async () =>
      (await getJson(`${sandbox.baseUrl}/c/${token}/status`, {}, target)) as {
        state: string;
        amount: string | null;
        address: string | null;
      };
    const { amount, address } = await readView();
    const isConfirming = async () => (await readView()).state === 'confirming';
    if (amount !== null && address !== null) return { ...toTarget(amount, address), reference: target, isConfirming };
    throw new CliError(
      'CONFLICT',
      `${target} has its payment already and asks for none: to pay it again on purpose, name its invoiceId`,
    );
  }
  const invoiceId = target.startsWith('inv_') ? target : await findByExternalId(sandbox, target);
  const url = `${sandbox.baseUrl}/v1/invoices/${encodeURIComponent(invoiceId)}?expand=payment`;
  const readInvoice = async () =>
    (await getJson(url, { 'X-Api-Key': sandbox.apiKey }, target)) as {
      status: string;
      payment: { payableAmount: string; address: string };
    };
  const { payment } = await readInvoice();
  const isConfirming = async () => (await readInvoice()).status === 'CONFIRMING';
  return { ...toTarget(payment.payableAmount, payment.address), reference: invoiceId, isConfirming };
}

async function findByExternalId(sandbox: SandboxFile, externalId: string): Promise<string> {
  const url = `${sandbox.baseUrl}/v1/invoices?externalId=${encodeURIComponent(externalId)}`;
  const { data } = (await getJson(url, { 'X-Api-Key': sandbox.apiKey }, externalId)) as {
    data: { invoiceId: string }[];
  };
  if (data[0] !== undefined) return data[0].invoiceId;
  throw new CliError('NOT_FOUND', `the sandbox has no invoice ${externalId}`);
}

async function findSecond(sandbox: SandboxFile, first: Payable, named: string | null): Promise<Payable> {
  if (named !== null) return findPayable(sandbox, named);
  const name = `two-in-one-${Date.now()}`;
  const response = await request(`${sandbox.baseUrl}/v1/invoices`, {
    method: 'POST',
    headers: { 'X-Api-Key': sandbox.apiKey, 'Idempotency-Key': name, 'Content-Type': 'application/json' },
    body: JSON.stringify({
      amount: formatAmount(microUsdt(first.amountMicro)),
      asset: 'USDT',
      network: 'TRON',
      externalId: name,
    }),
  });
  const created = (await response.body.json()) as { invoiceId?: string; detail?: string };
  if (created.invoiceId !== undefined) return findPayable(sandbox, created.invoiceId);
  throw new AppError(
    'SANDBOX_REFUSED',
    `the second invoice could not be created: ${created.detail ?? response.statusCode}`,
  );
}

function toTarget(amount: string, address: string): PaymentTarget {
  const parsed = parseAmount(amount);
  if (parsed.kind === 'invalid') throw new Error(`the sandbox answered the amount ${amount}`);
  return { address, amountMicro: parsed.amountMicro };
}

async function getJson(url: string, headers: Record<string, string>, target: string): Promise<unknown> {
  const response = await request(url, { headers }).catch((cause: unknown) => {
    throw new AppError(
      'SANDBOX_NOT_RUNNING',
      `the sandbox at ${new URL(url).origin} does not answer: is it still running?`,
      {
        cause,
      },
    );
  });
  const answer: unknown = await response.body.json();
  if (response.statusCode === 200) return answer;
  if (response.statusCode === 404) throw new CliError('NOT_FOUND', `the sandbox has no invoice ${target}`);
  throw new AppError('SANDBOX_REFUSED', `the sandbox answered ${response.statusCode} for ${target}`);
}
