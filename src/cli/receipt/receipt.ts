import { createReadStream } from 'node:fs';
import { AppError, invalidArgument } from '../../core/domain/errors.ts';
import { isLocalNetwork, keyMode } from '../../core/domain/network.ts';
import { MAX_KEY_SET_BYTES, MAX_RECEIPT_BYTES, type Receipt, readKeyIds } from '../../core/domain/receipt/receipt.ts';
import { formatFields } from '../../faces/operator/command-words.ts';
import { clip, printable } from '../../faces/operator/input/problems.ts';
import { verifyReceipt } from '../../faces/operator/subjects/receipts.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';

/** Exits with 1 for a receipt that was changed, can't be read, or isn't signed with any of the given keys. */
export async function printVerified(terminal: Terminal, file: string, keysFile: string | undefined): Promise<Result> {
  const source = file === '-' ? 'standard input' : clip(file);
  const bytes = await readBytes(file === '-' ? terminal.stdin : createReadStream(file), source, MAX_RECEIPT_BYTES);
  const known = keysFile === undefined ? null : await readKeys(keysFile);
  const data = verifyReceipt({ bytes, source, known });
  if (data.valid) {
    return { data, text: [describe(data.receipt, data.keyId), explain(data.receipt, data.isIssuerKnown)] };
  }
  return {
    data,
    text: `not valid: ${printable(data.message)}`,
    next: 'this receipt proves nothing; download it again from its source',
    hasFailed: true,
  };
}

function describe({ transaction, ...receipt }: Receipt, keyId: string): string {
  const isTest = keyMode(receipt.chain) === 'test';
  return formatFields([
    ['issuer', receipt.issuer],
    ['paid to', receipt.merchant],
    ['amount', `${receipt.amount} ${receipt.asset}`],
    ['network', `${receipt.network} ${receipt.chain}${isTest ? ' (a test network: no real money)' : ''}`],
    ['contract', receipt.contract],
    ['from', receipt.from],
    ['to', receipt.to],
    ['transaction', transaction.txId],
    ['log index', String(transaction.logIndex)],
    ['block', String(transaction.blockNumber)],
    ['block id', transaction.blockId],
    ['time', transaction.blockTime],
    ['signed with', keyId],
  ]);
}

function explain({ issuer, chain }: Receipt, isIssuerKnown: boolean): string {
  const keysUrl = `${issuer}/.well-known/quittance-receipt-keys.json`;
  const where = isLocalNetwork(chain) ? "on one of its network's nodes" : `on a TRON ${chain} explorer`;
  const proven = [
    'the owner of the key above signed exactly these statements, and they have not been changed since',
    ...(isIssuerKnown
      ? [`that key is in the key file: if you downloaded the file from ${keysUrl}, the issuer signed the receipt`]
      : []),
  ];
  const open = [
    ...(isIssuerKnown ? [] : [`that the key belongs to the issuer: save ${keysUrl} and pass the file with --keys`]),
    `who is behind ${issuer}: a receipt is only as trustworthy as its issuer`,
    `that the transaction is on the chain: look it up ${where}, and compare the token's contract, from, to and amount`,
  ];
  const list = (items: readonly string[]) => items.map((item) => `  - ${printable(item)}`).join('\n');
  return `Proven here:\n${list(proven)}\nNot proven here:\n${list(open)}`;
}

async function readKeys(file: string): Promise<{ ids: string[]; source: string }> {
  const source = clip(file);
  const bytes = await readBytes(createReadStream(file), source, MAX_KEY_SET_BYTES);
  const ids = readKeyIds(new TextDecoder().decode(bytes));
  if (ids !== null && ids.length > 0) return { ids, source };
  throw invalidArgument`--keys ${source} contains no receipt keys: save the issuer's /.well-known/quittance-receipt-keys.json`;
}

/** Reads at most one byte more than `maxBytes`. The additional byte shows that the input is too long. */
async function readBytes(stream: NodeJS.ReadableStream, source: string, maxBytes: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  try {
    for await (const part of stream) {
      parts.push(Buffer.from(part));
      size += parts.at(-1)?.length ?? 0;
      if (size > maxBytes) break;
    }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    if (code === 'ENOENT') throw new AppError('NOT_FOUND', `the file ${source} does not exist`, { cause: error });
    throw new AppError('INVALID_ARGUMENT', `${source} cannot be read (${code})`, { cause: error });
  }
  return Buffer.concat(parts).subarray(0, maxBytes + 1);
}
