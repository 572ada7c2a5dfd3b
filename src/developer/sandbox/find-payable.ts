import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { CONTROL_PATH } from '@quittance/devnet/node/control';
import { request } from 'undici';
import { AppError, conflict, notFound } from '../../core/domain/errors.ts';
import { decodeId, encodeId, isCheckoutToken } from '../../core/domain/ids.ts';
import type { InvoiceStatus } from '../../core/domain/invoice.ts';
import { type UnixMs, unixMs } from '../../core/domain/time.ts';
import { systemClock } from '../../core/runtime/clock.ts';
import type { Database } from '../../core/store/db/database.ts';
import { answerOf } from '../../core/store/db/rows-of.ts';
import { findCheckoutInvoice } from '../../core/store/ledger/checkout.ts';
import { findInvoicePayment, type InvoicePayment } from '../../core/store/ledger/payments.ts';
import { clip } from '../../faces/operator/input/problems.ts';
import type { Sandbox, SandboxFile } from './sandbox-file.ts';

/** A sandbox's invoice with everything that its payer needs to know. */
export type Payable = Pick<InvoicePayment, 'requestedMicro' | 'payableMicro' | 'address' | 'checkoutToken'> & {
  /** The invoice's name in messages to people. */
  reference: string;
  readStatus(): Promise<InvoiceStatus>;
};

type Found = Omit<Payable, 'reference' | 'readStatus'> & Pick<InvoicePayment, 'id' | 'status'>;

/**
 * Finds an invoice by its `inv_…` id, its checkout URL, or its external id in the project. An external id can look like the other two, so
 * it's tried last. With a key, only invoices in the key's own project are found, even by URL. Throws `NOT_FOUND` or `CONFLICT`.
 */
export async function findPayable(sandbox: Sandbox, target: string): Promise<Payable> {
  const byLink = () => lookByLink(sandbox, target);
  const looks = [() => lookById(sandbox, decodeId('inv', target)), byLink, () => lookByExternalId(sandbox, target)];
  for (const look of looks) {
    const found = await look();
    if (found === null) continue;
    const { id, status, ...invoice } = found;
    if (look === byLink && (status === 'CONFIRMING' || status === 'PAID'))
      throw conflict`${target} already has a payment: to pay it again on purpose, use its invoiceId`;
    const readStatus = async () => {
      const again = await look();
      if (again === null) throw unknownName(sandbox, target);
      return again.status;
    };
    // A checkout link doesn't reveal the invoice id, so messages about the link don't reveal it either.
    return { ...invoice, reference: look === byLink ? target : encodeId('inv', id), readStatus };
  }
  throw unknownName(sandbox, target);
}

async function lookById({ db, projectUuid }: Sandbox, id: string | null): Promise<Found | null> {
  return id === null ? null : findInvoicePayment(db, projectUuid, id);
}

async function lookByLink(sandbox: Sandbox, target: string): Promise<Found | null> {
  const token = /\/c\/([^/?#]+)/.exec(target)?.[1] ?? '';
  const found = isCheckoutToken(token) ? await findCheckoutInvoice(sandbox.db, token) : null;
  return found === null || !sandbox.isOfKey ? found : lookById(sandbox, found.id);
}

async function lookByExternalId(sandbox: Sandbox, externalId: string): Promise<Found | null> {
  // Half of a surrogate pair can't be stored or queried.
  if (!externalId.isWellFormed()) return null;
  return lookById(sandbox, await findIdOfOrder(sandbox.db, sandbox.projectUuid, externalId));
}

function unknownName({ isOfKey }: Sandbox, name: string): AppError {
  const shown = clip(name);
  if (isOfKey) return notFound`This key's project has no invoice ${shown}.`;
  const advice = /\/c\//.test(name) ? '' : "; to pay another project's invoice, use its checkout page URL";
  const whose = advice === '' ? 'the sandbox' : 'the sandbox demo project';
  return notFound`${whose} has no invoice ${shown}${advice}`;
}

/** Creates an invoice in the project. Returns its id, or the refusal. Throws `SANDBOX_NOT_RUNNING`. */
export async function orderInvoice(sandbox: Sandbox, { amount, externalId }: { amount: string; externalId: string }) {
  const body = JSON.stringify({ amount, asset: 'USDT', network: 'TRON', externalId });
  const headers = { 'Idempotency-Key': randomUUID(), 'Content-Type': 'application/json' };
  const { baseUrl, apiKey } = sandbox;
  const response = await request(`${baseUrl}/v1/invoices`, {
    method: 'POST',
    headers: { ...headers, 'X-Api-Key': apiKey },
    body,
  }).catch((cause: unknown) => {
    const message = `the sandbox at ${baseUrl} does not respond: is it still running?`;
    throw new AppError('SANDBOX_NOT_RUNNING', message, { cause });
  });
  const answer = (await response.body.json()) as { invoiceId?: string; detail?: string };
  return { ...answer, status: response.statusCode };
}

const POLL_MS = 50;

/** There is a block at least every minute, and the watcher reads it a moment later. */
const EXPIRY_TIMEOUT_MS = 150_000;

/**
 * Brings an invoice's deadline forward to now and waits until the next block makes it EXPIRED. Throws `CONFLICT` if the invoice already has
 * its payment, or `SANDBOX_REFUSED` if it doesn't expire.
 */
export async function letExpire(db: Database, { checkoutToken, reference, readStatus }: Payable): Promise<void> {
  await bringDeadlineForward(db, checkoutToken, unixMs(systemClock.now()));
  const deadlineMs = performance.now() + EXPIRY_TIMEOUT_MS;
  for (; performance.now() < deadlineMs; await delay(POLL_MS)) {
    const status = await readStatus();
    if (status === 'EXPIRED') return;
    if (status !== 'PENDING') throw conflict`${reference} already has a payment (${status}), so it cannot be paid late`;
  }
  throw new AppError('SANDBOX_REFUSED', `${reference} did not expire within ${EXPIRY_TIMEOUT_MS / 1000} seconds`);
}

export type OrphanedPayment = { blockNumber: number; blocks: number; wasConfirming: boolean };

/**
 * If the payment's block is this many blocks above the solid one, the payment is orphaned even if its invoice wasn't seen CONFIRMING,
 * because two more blocks would make it solid.
 */
const SAFE_BLOCKS = 2;

/** The payment may miss the next block. */
const BLOCK_TIMEOUT_MS = 150_000;

/**
 * Waits until a payment is in a block and its invoice is CONFIRMING. Then makes devnet orphan that block and drop the payment; the block's
 * other payments reappear. It doesn't wait for CONFIRMING if the payment would soon be irreversible. Throws `SANDBOX_REFUSED`.
 */
export async function orphanPayment(
  { nodeUrl }: Pick<SandboxFile, 'nodeUrl'>,
  { readStatus }: Payable,
  txId: string,
): Promise<OrphanedPayment> {
  const deadlineMs = performance.now() + BLOCK_TIMEOUT_MS;
  for (; performance.now() < deadlineMs; await delay(POLL_MS)) {
    type Info = { blockNumber?: number };
    const { blockNumber } = (await post<Info>(nodeUrl, '/wallet/gettransactioninfobyid', { value: txId })).body;
    if (blockNumber === undefined) continue;
    const wasConfirming = (await readStatus()) === 'CONFIRMING';
    type Solid = { block_header: { raw_data: { number?: number } } };
    const solid = (await post<Solid>(nodeUrl, '/walletsolidity/getblock', {})).body.block_header.raw_data.number ?? 0;
    if (!wasConfirming && blockNumber - solid > SAFE_BLOCKS) continue;
    type Orphaned = { orphaned?: number; error?: string };
    const order = { transactionId: txId, keepOthers: true };
    const { status, body } = await post<Orphaned>(nodeUrl, CONTROL_PATH, order);
    const { orphaned, error } = body;
    if (status === 200 && orphaned !== undefined) return { blockNumber, blocks: orphaned, wasConfirming };
    throw new AppError('SANDBOX_REFUSED', `the local network cannot orphan block ${blockNumber}: ${error ?? status}`);
  }
  throw new AppError(
    'SANDBOX_REFUSED',
    `the payment ${txId} was still not in any block after ${BLOCK_TIMEOUT_MS / 1000} seconds`,
  );
}

async function post<Answer>(nodeUrl: string, path: string, body: object): Promise<{ status: number; body: Answer }> {
  const response = await request(nodeUrl + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.statusCode, body: (await response.body.json()) as Answer };
}

/**
 * Brings a pending invoice's deadline forward so that no one has to wait for it to pass. Returns the deadline, or `null` if nothing was
 * changed; only invoices on a local network can be changed.
 */
const bringDeadlineForward = answerOf(
  'sandbox-invoice-bring-deadline-forward',
  { expiresAt: 'timestamptz?' },
  'select hurry_devnet_invoice($1, $2) as expires_at',
  (checkoutToken: string, to: UnixMs) => [checkoutToken, new Date(to)],
  ([row]) => row?.expiresAt ?? null,
);

/** Finds a project's invoice (UUID) by external id. */
const findIdOfOrder = answerOf(
  'sandbox-invoice-by-external-id',
  { id: 'uuid' },
  'select id from invoices where project_id = $1 and external_id = $2',
  (projectId: string, externalId: string) => [projectId, externalId],
  ([row]) => row?.id ?? null,
);
