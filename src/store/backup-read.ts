import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { AppError } from '../domain/errors.ts';
import {
  ANY_MAGIC,
  type BackupHeader,
  DIGEST_BYTES,
  FRAME_HEAD_BYTES,
  type Frame,
  hashing,
  MAGIC,
  MAX_FRAME_BYTES,
} from './backup-format.ts';

/**
 * Reads a whole backup and returns its header. Errors: `BACKUP_DAMAGED` if any byte was changed or is missing, `INVALID_ARGUMENT`
 * for what is no backup, `NOT_FOUND`.
 */
export async function checkBackup(path: string): Promise<BackupHeader> {
  let header: BackupHeader | undefined;
  let isComplete = false;
  for await (const frame of readFrames(path)) {
    if (frame.type === 'h') header = frame.header;
    isComplete = frame.type === 'z';
  }
  if (header === undefined || !isComplete) throw damaged(path, 'it holds no whole backup');
  return header;
}

/** The frames of a backup, in order. Only when it has ended without an error is it known that none of them was changed. */
export async function* readFrames(path: string): AsyncGenerator<Frame> {
  const size = await readSize(path);
  const magic = await readBytes(path, 0, MAGIC.length);
  if (!magic.equals(MAGIC)) throw await notABackup(path, magic);
  if (size < MAGIC.length + DIGEST_BYTES) throw damaged(path, `it ends after ${size} bytes`);
  const hash = createHash('sha256').update(magic);
  const gunzip = createGunzip();
  const end = size - DIGEST_BYTES - 1;
  const reading = pipeline(createReadStream(path, { start: MAGIC.length, end }), hashing(hash), gunzip);
  reading.catch(() => undefined); // It fails the iteration, too.
  try {
    yield* parseFrames(path, gunzip);
    await reading;
  } catch (error) {
    if (isBroken(error)) throw damaged(path, error instanceof Error ? error.message : String(error));
    throw error;
  } finally {
    gunzip.destroy();
  }
  const expected = await readBytes(path, end + 1, DIGEST_BYTES);
  if (!hash.digest().equals(expected)) throw damaged(path, 'its digest is another one');
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
      if (length > MAX_FRAME_BYTES) throw damaged(path, `a part of it has ${length} bytes`);
      wanted += length;
      if (buffer.length < wanted) break;
      yield decodeFrame(path, String.fromCharCode(buffer[0] ?? 0), buffer.subarray(FRAME_HEAD_BYTES, wanted));
      buffer = buffer.subarray(wanted);
    }
    pending = [buffer];
    size = buffer.length;
  }
  if (size > 0) throw damaged(path, 'it ends within a part');
}

function decodeFrame(path: string, type: string, body: Buffer): Frame {
  if (type === 'd') return { type, rows: body };
  try {
    if (['h', 't', 'e', 'z'].includes(type)) return { ...JSON.parse(body.toString('utf8')), type } as Frame;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw damaged(path, 'a part of it cannot be read');
}

/** What zlib says of bytes that it did not write, and streams of a file that became shorter. */
function isBroken(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return /^(Z_|ERR_STREAM_PREMATURE_CLOSE)/.test(code);
}

export function damaged(path: string, reason: string): AppError {
  return new AppError(
    'BACKUP_DAMAGED',
    `${path} was changed or is not whole (${reason}): nothing was restored from it; take another copy of this backup, or another backup`,
  );
}

async function notABackup(path: string, magic: Buffer): Promise<AppError> {
  if (magic.subarray(0, ANY_MAGIC.length).equals(ANY_MAGIC)) {
    return new AppError(
      'SCHEMA_NEWER',
      `${path} is of a format that this release does not read: restore it with the newer release of Quittance that made it`,
    );
  }
  return new AppError(
    'INVALID_ARGUMENT',
    `${path} is no backup of Quittance: give a file that "quittance backup" wrote`,
  );
}

async function readSize(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new AppError(
      code === 'ENOENT' ? 'NOT_FOUND' : 'INVALID_ARGUMENT',
      code === 'ENOENT' ? `there is no file ${path}` : `${path} cannot be read (${code})`,
      { cause: error },
    );
  }
}

async function readBytes(path: string, position: number, length: number): Promise<Buffer> {
  const handle = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, position);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}
