import { createHash, timingSafeEqual } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { bech32 } from '@scure/base';
import { AppError, invalidArgument } from '../../../core/domain/errors.ts';
import { say } from '../../../core/domain/message.ts';
import { deriveKey, type KeyRing, type MasterKey } from '../../../core/runtime/key-ring.ts';
import { reasonOf } from '../../../core/runtime/reason-of.ts';
import {
  ANY_MAGIC,
  type Authenticity,
  type BackupEnding,
  type BackupHeader,
  DIGEST_BYTES,
  FRAME_HEAD_BYTES,
  type Frame,
  KEY_ID_BYTES,
  MAC_BYTES,
  MAC_MAGIC,
  MAGIC,
  MAX_FRAME_BYTES,
  macOf,
} from './backup-format.ts';

/** The format of https://age-encryption.org/v1, so `age -d` opens these files too. */
const AGE_MAGIC = Buffer.from('age-encryption.org/v1\n');

/** Whether all the texts are age secret keys. */
export async function areIdentities(identities: readonly string[]): Promise<boolean> {
  const { Decrypter } = await import('age-encryption');
  try {
    for (const identity of identities) new Decrypter().addIdentity(identity);
    return true;
  } catch {
    // The error isn't reported, because it contains the key.
    return false;
  }
}

/**
 * Decrypts a stream that was encrypted with the public key of one of `identities` (`AGE-SECRET-KEY-1…`). It never yields a changed byte,
 * and throws if the end is missing. Throws the errors of `file`; `refused` means that no identity fits.
 */
async function* decryptWith(
  identities: readonly string[],
  source: AsyncIterable<Uint8Array>,
  file: { refused(cause: Error): AppError; damaged(reason: string): AppError },
): AsyncGenerator<Uint8Array> {
  const { Decrypter } = await import('age-encryption');
  const decrypter = new Decrypter();
  for (const identity of identities) decrypter.addIdentity(identity);
  let failed: unknown;
  try {
    // Rethrows errors from the source unchanged so that they aren't mistaken for a wrong key.
    const watched = async function* () {
      try {
        yield* source;
      } catch (error) {
        failed = error;
        throw error;
      }
    };
    yield* await decrypter.decrypt(ReadableStream.from(watched()));
  } catch (error) {
    if (failed !== undefined) throw failed;
    if (error instanceof Error && error.message.startsWith('no identity matched')) {
      throw file.refused(error);
    }
    throw file.damaged('part of it cannot be decrypted');
  }
}

/** Our recipients take a few hundred bytes each; recipients with quantum-safe keys take two thousand. */
const MAX_AGE_HEADER_BYTES = 64 * 1024;

/** Returns how many keys a file is encrypted with, from its first bytes. Returns `null` if these bytes contain no complete header. */
function countRecipients(start: Buffer): number | null {
  const end = start.indexOf('\n--- ');
  if (end === -1) return null;
  return start.toString('latin1', 0, end).split('\n-> ').length - 1;
}

type AgePair = { identity: string; recipient: string };

/** Derives the age key pair of a master key. Anyone who has the master key can decrypt files that are encrypted with this pair. */
export async function pairOfMasterKey(key: MasterKey): Promise<AgePair> {
  const { identityToRecipient } = await import('age-encryption');
  const identity = identityOf(key);
  return { identity, recipient: await identityToRecipient(identity) };
}

/** Derives the secret key of a master key's pair, `AGE-SECRET-KEY-1…`. */
function identityOf(key: MasterKey): string {
  const secret = deriveKey(key, { purpose: 'quittance backup encryption 1', salt: '' });
  return bech32.encodeFromBytes('AGE-SECRET-KEY-', secret).toUpperCase();
}

/** Creates a new key pair that exists only in memory. */
export async function createAgePair(): Promise<AgePair> {
  const { generateX25519Identity, identityToRecipient } = await import('age-encryption');
  const identity = await generateX25519Identity();
  return { identity, recipient: await identityToRecipient(identity) };
}

/**
 * The keys needed to open a file. `keyRing` authenticates it, and decrypts files that are encrypted with a master key. `identities` are age
 * secret keys for other encrypted files.
 */
export type Opening = { keyRing: KeyRing | null; identities?: readonly string[] };

/**
 * Reads a whole backup and checks its authenticity. Throws `BACKUP_DAMAGED` if the bytes don't match the digest in the file,
 * `BACKUP_ENCRYPTED` if no identity fits, `INVALID_ARGUMENT` if the file isn't a backup, or `NOT_FOUND`.
 */
export async function checkBackup(path: string, opening: Opening) {
  const { keyRing } = opening;
  const frames = readFrames(path, opening);
  let header: BackupHeader | undefined;
  let isComplete = false;
  for (let next = await frames.next(); ; next = await frames.next()) {
    if (next.done === true) {
      if (header === undefined || !isComplete) throw damaged(path, 'it contains no complete backup');
      // An attacker may have written the header, so check the type of the id.
      const ledgerId = typeof header.ledger?.id === 'string' ? header.ledger.id : null;
      return { header, ending: next.value, authenticity: authenticate(keyRing, ledgerId, next.value) };
    }
    const frame = next.value;
    // The header must be first and occur only once, and nothing may follow the end.
    if ((frame.type === 'h') !== (header === undefined) || isComplete)
      throw damaged(path, 'its parts are in the wrong order');
    if (frame.type === 'h') header = frame.header;
    isComplete = frame.type === 'z';
  }
}

/**
 * Yields the frames of a backup in order, and returns its trailer. If it ends without an error, no frame was damaged by accident.
 * `authenticate` detects deliberate changes.
 */
export async function* readFrames(path: string, opening: Opening): AsyncGenerator<Frame, BackupEnding> {
  await refuseOtherFiles(path);
  const found: { ending?: BackupEnding } = {};
  const gunzip = createGunzip();
  const reading = pipeline(readBody(path, await openBackup(path, opening), found), gunzip);
  reading.catch(() => undefined); // Iterating below throws the same error.
  try {
    yield* parseFrames(path, gunzip);
    await reading;
  } catch (error) {
    if (isBroken(error)) throw damaged(path, reasonOf(error));
    throw error;
  } finally {
    gunzip.destroy();
  }
  // If bytes follow the compressed part, reading ends early.
  if (found.ending === undefined) throw damaged(path, 'it contains data after its end');
  return found.ending;
}

/** Opens a backup and decrypts it if necessary. */
async function openBackup(path: string, { keyRing, identities = [] }: Opening): Promise<AsyncIterable<Uint8Array>> {
  const source = createReadStream(path);
  const encryption = await describeEncryption(path);
  if (encryption === null) return source;
  const all = [...identities, ...(keyRing?.keys() ?? []).map(identityOf)];
  const refused = (cause?: Error) => {
    const text =
      identities.length === 0
        ? say`${path} is encrypted to ${encryption.recipients} key(s), and cannot be read without one of them: set ${{ field: 'identities' }} to the file with the secret key`
        : say`${path} is encrypted to a key that is not in ${{ field: 'identities' }}: use the file with the secret key of one of its recipients`;
    return new AppError('BACKUP_ENCRYPTED', text, { cause });
  };
  if (all.length === 0) throw refused();
  return decryptWith(all, source, { refused, damaged: (reason) => damaged(path, reason) });
}

/** Returns how many keys a file is encrypted with, or `null` if it isn't encrypted. Throws `BACKUP_DAMAGED`. */
export async function describeEncryption(path: string): Promise<{ recipients: number } | null> {
  const start = await readStart(path, MAX_AGE_HEADER_BYTES);
  if (!start.subarray(0, AGE_MAGIC.length).equals(AGE_MAGIC)) return null;
  const recipients = countRecipients(start);
  if (recipients === null) throw damaged(path, 'its encryption header is incomplete');
  return { recipients };
}

/**
 * Yields the compressed part and hashes all bytes. It always holds back as many bytes as the trailer has, and stores the trailer in `found`
 * at the end.
 */
async function* readBody(path: string, source: AsyncIterable<Uint8Array>, found: { ending?: BackupEnding }) {
  const hash = createHash('sha256');
  let held = Buffer.alloc(0);
  let trailerBytes = 0;
  for await (const chunk of source) {
    held = Buffer.concat([held, chunk]);
    if (trailerBytes === 0) {
      if (held.length < MAGIC.length) continue;
      const magic = held.subarray(0, MAGIC.length);
      if (!magic.equals(MAGIC) && !magic.equals(MAC_MAGIC)) throw notABackup(path, magic);
      trailerBytes = DIGEST_BYTES + (magic.equals(MAC_MAGIC) ? KEY_ID_BYTES + MAC_BYTES : 0);
      hash.update(magic);
      held = held.subarray(MAGIC.length);
    }
    const size = held.length - trailerBytes;
    if (size <= 0) continue;
    hash.update(held.subarray(0, size));
    yield held.subarray(0, size);
    held = held.subarray(size);
  }
  if (trailerBytes === 0 || held.length < trailerBytes) throw damaged(path, 'it ends before its trailer');
  const digest = hash.copy().digest();
  const signature = held.subarray(0, -DIGEST_BYTES);
  if (!hash.update(signature).digest().equals(held.subarray(-DIGEST_BYTES)))
    throw damaged(path, 'its checksum is wrong');
  const masterKeyId = signature.toString('hex', 0, KEY_ID_BYTES);
  found.ending = {
    digest,
    signed: signature.length === 0 ? null : { masterKeyId, mac: signature.subarray(KEY_ID_BYTES) },
  };
}

async function* parseFrames(path: string, source: AsyncIterable<Buffer>): AsyncGenerator<Frame> {
  let pending: Buffer[] = [];
  let size = 0;
  let wanted = FRAME_HEAD_BYTES;
  for await (const chunk of source) {
    pending.push(chunk);
    size += chunk.length;
    if (size < wanted) continue;
    let buffer = Buffer.concat(pending);
    for (;;) {
      wanted = FRAME_HEAD_BYTES;
      if (buffer.length < wanted) break;
      const length = buffer.readUInt32BE(1);
      const type = String.fromCharCode(buffer[0] ?? 0);
      if (length > (MAX_FRAME_BYTES[type] ?? 0))
        throw damaged(path, `one of its parts has ${length} bytes, which is too many`);
      wanted += length;
      if (buffer.length < wanted) break;
      yield decodeFrame(path, type, buffer.subarray(FRAME_HEAD_BYTES, wanted));
      buffer = buffer.subarray(wanted);
    }
    pending = [buffer];
    size = buffer.length;
  }
  if (size > 0) throw damaged(path, 'it ends in the middle of a part');
}

function decodeFrame(path: string, type: string, body: Buffer): Frame {
  if (type === 'd') return { type, rows: body };
  try {
    if (['h', 't', 'e', 'z'].includes(type)) {
      const content: unknown = JSON.parse(body.toString('utf8'));
      if (isObject(content) && (type !== 'h' || isHeader(content['header']))) return { ...content, type } as Frame;
    }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw damaged(path, 'one of its parts cannot be read');
}

/** Checks only the members that identify the ledger. No other part of an unauthenticated file is read unless a person asks for it. */
function isHeader(header: unknown): boolean {
  return isObject(header) && LISTS.every((name) => Array.isArray(header[name]));
}

const LISTS = ['migrations', 'cursors', 'totals', 'masterKeyIds'] as const;

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether zlib couldn't decompress the bytes, or the file was truncated while it was being read. */
function isBroken(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return /^(Z_|ERR_STREAM_PREMATURE_CLOSE)/.test(code);
}

export function damaged(path: string, reason: string): AppError {
  return new AppError(
    'BACKUP_DAMAGED',
    `${path} is damaged, incomplete or modified (${reason}), so nothing was restored; use a different copy of this backup, or a different backup`,
  );
}

/** Runs before the file is read as a stream so that an error is about the file and not about decompression. */
export async function refuseOtherFiles(path: string): Promise<void> {
  const size = await readSize(path);
  const start = await readStart(path, AGE_MAGIC.length);
  if (start.equals(AGE_MAGIC)) return;
  const magic = start.subarray(0, MAGIC.length);
  if (!magic.equals(MAGIC) && !magic.equals(MAC_MAGIC)) throw notABackup(path, magic);
  if (size < MAGIC.length + DIGEST_BYTES) throw damaged(path, `it ends after ${size} bytes`);
}

function notABackup(path: string, magic: Buffer): AppError {
  if (magic.subarray(0, ANY_MAGIC.length).equals(ANY_MAGIC)) {
    return new AppError(
      'SCHEMA_NEWER',
      `${path} has a format that this release cannot read: restore it with the newer release of Quittance that created it`,
    );
  }
  return invalidArgument`${path} is not a Quittance backup: use a file created by "${{ command: 'backup' }}"`;
}

async function readSize(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new AppError(
      code === 'ENOENT' ? 'NOT_FOUND' : 'INVALID_ARGUMENT',
      code === 'ENOENT' ? `the file ${path} does not exist` : `${path} cannot be read (${code})`,
      { cause: error },
    );
  }
}

async function readStart(path: string, length: number): Promise<Buffer> {
  const handle = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

/** Checks a backup's MAC with the master key whose id is in the backup; this can be any key in the ring. */
export function authenticate(
  keyRing: KeyRing | null,
  ledgerId: string | null,
  { digest, signed }: BackupEnding,
): Authenticity {
  if (signed === null) return { kind: 'unsigned' };
  const { masterKeyId, mac } = signed;
  const key = keyRing?.find(masterKeyId);
  if (key === undefined) return { kind: 'unknown-key', masterKeyId, hasKeys: keyRing !== null };
  return { kind: timingSafeEqual(macOf(key, ledgerId, digest), mac) ? 'authentic' : 'tampered', masterKeyId };
}
