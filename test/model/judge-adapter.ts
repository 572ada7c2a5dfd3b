import {
  type AdapterOperation,
  isAnyFree,
  type Model,
  type ModelAdapter,
  type Outcome,
  type Status,
  spend,
  toMicro,
} from './model.ts';
import { reserve } from './reserve.ts';

/** The values of a status in each protocol's documents. */
const TOLD: Readonly<Record<ModelAdapter['dialect'], Readonly<Record<Status, string>>>> = {
  epusdt: { PENDING: '1', PAID: '2', EXPIRED: '3' },
  gmpay: { PENDING: '1', PAID: '2', EXPIRED: '3' },
  epay: { PENDING: '0', PAID: '1', EXPIRED: '0' },
};

/** Returns why an adapter's answer is wrong, or changes the model and returns `null`. */
export function judgeAdapter(model: Model, operation: AdapterOperation, outcome: Outcome): string | null {
  const adapter = model.adapters[operation.adapter];
  if (adapter === undefined) throw new Error(`there is no adapter ${operation.adapter}`);
  if (operation.kind === 'disable') {
    adapter.isRevoked = true;
    return null;
  }
  if (operation.kind === 'rate') {
    adapter.isRateOld = operation.isOld;
    return null;
  }
  const isForged = operation.kind === 'order' && operation.isForged;
  if (adapter.isRevoked || isForged) {
    return outcome.status === 404 && outcome.invoice === null ? null : 'an adapter that is not there answered';
  }
  // Reading an order of epusdt isn't signed, so it doesn't use up the adapter's tokens.
  if (operation.kind === 'order' || adapter.dialect === 'epay') {
    const { isRefused, wrong } = spend(adapter, outcome.status);
    if (isRefused) return wrong;
  }
  return operation.kind === 'order'
    ? judgeOrder(model, adapter, operation, outcome)
    : judgeTrade(model, adapter, operation, outcome);
}

/** Identifies an order; no other caller can create such a key. */
const keyOf = ({ adapter, orderId, amount }: Extract<AdapterOperation, { kind: 'order' }>) =>
  `${prefixOf(adapter)}${orderId} for ${amount}`;
const prefixOf = (adapter: number) => `adapter ${adapter}: `;

function judgeOrder(
  model: Model,
  { project, dialect, isRateOld }: ModelAdapter,
  operation: Extract<AdapterOperation, { kind: 'order' }>,
  { code, invoice, reserved }: Outcome,
): string | null {
  const { orderId, amount, isInvalid } = operation;
  // EPay has a single code for all refusals.
  const isRefusedWith = (wanted: string) => invoice === null && code === (dialect === 'epay' ? '-1' : wanted);
  if (isInvalid) return isRefusedWith('10004') ? null : 'a wrong amount was taken';
  const idempotencyKey = keyOf(operation);
  const holder = [...model.invoices.values()].find((each) => each.project === project && each.externalId === orderId);
  if (holder !== undefined && holder.idempotencyKey !== idempotencyKey)
    return isRefusedWith('10002') ? null : 'an order id was used again for another order';
  if (holder === undefined && isRateOld) return isRefusedWith('10006') ? null : 'an order was taken at an old rate';
  const amountMicro = inUsdt(amount);
  if (holder === undefined && isRefusedWith('10005')) {
    return isAnyFree(model, project, amountMicro) ? 'an order was refused, and a payable amount is free' : null;
  }
  if (invoice === null || reserved === null) return `a right order was refused with ${code}`;
  if (invoice.externalId !== orderId) return 'the answer is of another order';
  if (holder === undefined)
    return reserve(model, { project, externalId: orderId, idempotencyKey, amountMicro, said: {} }, invoice, reserved);
  const isTheSame =
    invoice.invoiceId === holder.invoiceId &&
    reserved.address === holder.address &&
    reserved.payableMicro === holder.payableMicro;
  return isTheSame ? null : 'the same order was answered with another invoice';
}

function judgeTrade(
  model: Model,
  { dialect }: ModelAdapter,
  operation: Extract<AdapterOperation, { kind: 'trade' }>,
  { code, invoice }: Outcome,
): string | null {
  const known = model.invoices.get(operation.invoiceId);
  if (known === undefined || !known.idempotencyKey.startsWith(prefixOf(operation.adapter))) {
    const isUnknown = invoice === null && code === (dialect === 'epay' ? '-1' : '10008');
    return isUnknown ? null : 'an order of somebody else was shown';
  }
  const isRight = invoice?.invoiceId === known.invoiceId && invoice.status === TOLD[dialect][known.status];
  return isRight ? null : `an order that is ${known.status} was told as ${invoice?.status ?? code}`;
}

/** Converts at 7.2 for one USDT, rounded up to a whole cent. */
function inUsdt(amount: string): bigint {
  return ((toMicro(amount) + 71_999n) / 72_000n) * 10_000n;
}
