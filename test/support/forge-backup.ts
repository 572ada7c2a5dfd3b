import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { gunzipSync, gzipSync } from 'node:zlib';

const MAGIC_BYTES = 'quittance-backup 1\n'.length;
const DIGEST_BYTES = 32;
/** The id of a key and a MAC, in format 2. */
const SIGNATURE_BYTES = 40;

/** The parts of a backup for an attacker who can write to the file and knows its format, but has no key. */
export type BackupParts = { magic: Buffer; body: Buffer; signature: Buffer };

export async function takeApart(path: string): Promise<BackupParts> {
  const file = await readFile(path);
  const magic = file.subarray(0, MAGIC_BYTES);
  const signature = magic.includes('2') ? SIGNATURE_BYTES : 0;
  const end = file.length - DIGEST_BYTES - signature;
  return { magic, body: file.subarray(MAGIC_BYTES, end), signature: file.subarray(end, end + signature) };
}

/** Writes a file of these parts, with a matching digest. */
export async function putTogether(path: string, { magic, body, signature }: BackupParts): Promise<void> {
  const all = Buffer.concat([magic, body, signature]);
  await writeFile(path, Buffer.concat([all, createHash('sha256').update(all).digest()]));
}

/** Replaces a text in the rows by one of the same length, which keeps the frames intact. */
export function editRows(body: Buffer, from: string, to: string): Buffer {
  const rows = gunzipSync(body).toString('latin1');
  if (!rows.includes(from) || from.length !== to.length) throw new Error(`"${from}" cannot be replaced by "${to}"`);
  return gzipSync(Buffer.from(rows.replaceAll(from, to), 'latin1'));
}
