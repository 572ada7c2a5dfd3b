import { setTimeout } from 'node:timers/promises';
import { request } from 'undici';
import { CONTROL_PATH } from '../../devnet/control.ts';
import { AppError } from '../../domain/errors.ts';

export type OrphanedPayment = { blockNumber: number; blocks: number; wasConfirming: boolean };

const POLL_MS = 50;

/** So far above the solid block the payment is orphaned even if its invoice was not seen CONFIRMING: two blocks more make it solid. */
const SAFE_BLOCKS = 2;

/** A block comes at most every minute, and one may pass before the payment's. */
const BLOCK_TIMEOUT_MS = 150_000;

/**
 * Waits until a payment stands in a block and its invoice is CONFIRMING, then has the devnet orphan that block for good. It does not
 * wait for CONFIRMING when the payment would soon be irreversible. Error: `SANDBOX_REFUSED`.
 */
export async function orphanPayment({
  nodeUrl,
  txId,
  isConfirming,
}: {
  nodeUrl: string;
  txId: string;
  isConfirming: () => Promise<boolean>;
}): Promise<OrphanedPayment> {
  const deadlineMs = performance.now() + BLOCK_TIMEOUT_MS;
  for (; performance.now() < deadlineMs; await setTimeout(POLL_MS)) {
    const info = (await post(nodeUrl, '/wallet/gettransactioninfobyid', { value: txId })).body as {
      blockNumber?: number;
    };
    if (info.blockNumber === undefined) continue;
    const wasConfirming = await isConfirming();
    const solid = (await post(nodeUrl, '/walletsolidity/getblock', {})).body as {
      block_header: { raw_data: { number?: number } };
    };
    const solidNumber = solid.block_header.raw_data.number ?? 0;
    if (!wasConfirming && info.blockNumber - solidNumber > SAFE_BLOCKS) continue;
    const { status, body } = await post(nodeUrl, CONTROL_PATH, { transactionId: txId, keepTransactions: false });
    const { orphaned, error } = body as { orphaned?: number; error?: string };
    if (status === 200 && orphaned !== undefined) {
      return { blockNumber: info.blockNumber, blocks: orphaned, wasConfirming };
    }
    throw new AppError(
      'SANDBOX_REFUSED',
      `the local network cannot orphan block ${info.blockNumber}: ${error ?? status}`,
    );
  }
  throw new AppError('SANDBOX_REFUSED', `the payment ${txId} is in no block after ${BLOCK_TIMEOUT_MS / 1000} seconds`);
}

async function post(nodeUrl: string, path: string, body: object): Promise<{ status: number; body: unknown }> {
  const response = await request(nodeUrl + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.statusCode, body: await response.body.json() };
}
