import { setTimeout } from 'node:timers/promises';
import { CONTROL_PATH } from '@quittance/devnet/node/control';
import { request } from 'undici';
import { AppError } from '../../core/domain/errors.ts';
import type { Payable } from './find-payable.ts';
import type { SandboxFile } from './sandbox-file.ts';

export type OrphanedPayment = { blockNumber: number; blocks: number; wasConfirming: boolean };

const POLL_MS = 50;

/**
 * If the payment's block is this many blocks above the solid one, the payment is orphaned even if its invoice wasn't seen CONFIRMING,
 * because two more blocks would make it solid.
 */
const SAFE_BLOCKS = 2;

/** There is a block at least every minute, and the payment may miss the next one. */
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
  for (; performance.now() < deadlineMs; await setTimeout(POLL_MS)) {
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
