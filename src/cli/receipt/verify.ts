import { createReadStream } from 'node:fs';
import { keyMode } from '../../domain/network.ts';
import type { Receipt } from '../../domain/receipt.ts';
import { MAX_KEY_SET_BYTES, readKeyIds } from '../../domain/receipt-key.ts';
import { checkReceipt, MAX_RECEIPT_BYTES } from '../../domain/receipt-signature.ts';
import { CliError, EXIT } from '../cli-error.ts';
import { clip } from '../clip.ts';
import { formatFields, printable, type Result, type Terminal } from '../terminal.ts';

export type VerifyOptions = { keys?: string };

/**
 * Says what a receipt proves, with no network and no database. Exits 1 for one that was changed or cannot be read, and for one that
 * none of the given keys has signed.
 */
export async function verifyReceipt(terminal: Terminal, file: string, options: VerifyOptions): Promise<Result> {
  const source = file === '-' ? 'standard input' : clip(file);
  const stream = file === '-' ? terminal.stdin : createReadStream(file);
  const check = checkReceipt(await readBytes(stream, source, MAX_RECEIPT_BYTES));
  const known = options.keys === undefined ? null : await readKeys(options.keys);
  if (check.kind !== 'intact') return refuse(check.kind, `${source}: ${check.reason}`);
  const { receipt, keyId } = check;
  if (known !== null && !known.includes(keyId)) {
    return refuse(
      'other-key',
      `${source} is signed with the key ${keyId}, which is not among the ${known.length} of ${clip(options.keys ?? '')}: whoever signed it is not the one whose keys these are, or the file of keys is older than the key`,
    );
  }
  const isIssuerKnown = known !== null;
  return {
    data: { valid: true, keyId, isIssuerKnown, receipt },
    text: `${describe(receipt, keyId)}\n\n${explain(receipt, isIssuerKnown)}`,
  };
}

function refuse(problem: 'changed' | 'unreadable' | 'other-key', message: string): Result {
  return {
    data: { valid: false, problem, message },
    text: `not valid: ${printable(message)}`,
    next: 'this proves nothing; get the receipt again from where it came',
    exitCode: EXIT.failed,
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
  const where = chain === 'devnet' ? 'on a node of its network' : `on an explorer of TRON ${chain}`;
  const proven = [
    'whoever has the key above signed exactly these statements; nothing was changed since',
    ...(isIssuerKnown
      ? [`that key is one of those in the file of keys: if you took the file from ${keysUrl}, the issuer signed`]
      : []),
  ];
  const open = [
    ...(isIssuerKnown ? [] : [`that the key is the issuer's: save ${keysUrl} and give it with --keys`]),
    `who is behind ${issuer}: a receipt is worth as much as its issuer`,
    `that the transaction is on the chain: look it up ${where}, and compare the token's contract, from, to and amount`,
  ];
  const list = (items: readonly string[]) => items.map((item) => `  - ${printable(item)}`).join('\n');
  return `Proven here:\n${list(proven)}\nNot proven here:\n${list(open)}`;
}

async function readKeys(file: string): Promise<string[]> {
  const bytes = await readBytes(createReadStream(file), clip(file), MAX_KEY_SET_BYTES);
  const ids = readKeyIds(new TextDecoder().decode(bytes));
  if (ids !== null && ids.length > 0) return ids;
  throw new CliError(
    'INVALID_ARGUMENT',
    `--keys ${clip(file)} holds no keys of receipts: save what the issuer answers at /.well-known/quittance-receipt-keys.json`,
  );
}

/** At most one byte more than `maxBytes`, which tells that there is more. */
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
    if (code === 'ENOENT') throw new CliError('NOT_FOUND', `there is no file ${source}`, { cause: error });
    throw new CliError('INVALID_ARGUMENT', `${source} cannot be read (${code})`, { cause: error });
  }
  return Buffer.concat(parts).subarray(0, maxBytes + 1);
}
