import { constants, type FileHandle, lstat, open } from 'node:fs/promises';
import { join } from 'node:path';

/** PostgreSQL's log is cut to its last megabyte when it grows beyond ten: it is read to learn about a failure, which is at its end. */
const MAX_LOG_BYTES = 10 * 1024 * 1024;
const KEPT_LOG_BYTES = 1024 * 1024;
const TRIM_INTERVAL_MS = 60_000;
/** Enough for the reason of a failed start. */
const MAX_TAIL_BYTES = 16_384;

function logPath(home: string): string {
  return join(home, 'postgres.log');
}

/** Cuts the log if it is too long. The server appends, so it may be running; a line written in between may be lost. */
export async function trimLog(home: string): Promise<void> {
  if ((await logSize(home)) <= MAX_LOG_BYTES) return;
  const log = await openLog(home, constants.O_RDWR | constants.O_APPEND);
  if (log === undefined) return;
  try {
    const tail = await readEnd(log, KEPT_LOG_BYTES);
    await log.truncate();
    await log.appendFile(tail);
  } finally {
    await log.close();
  }
}

/** The file as PostgreSQL's user made it, and nothing that it may have put there for root to read or cut: no link, no pipe. */
async function openLog(home: string, flags: number): Promise<FileHandle | undefined> {
  const { O_NOFOLLOW, O_NONBLOCK } = constants;
  const log = await open(logPath(home), flags | O_NOFOLLOW | O_NONBLOCK).catch(() => undefined);
  const found = await log?.stat();
  if (found?.isFile() && found.nlink === 1) return log;
  await log?.close();
  return undefined;
}

/** Cuts the log once a minute until the returned timer is cleared; the timer does not keep the process alive. */
export function trimLogRegularly(home: string): NodeJS.Timeout {
  // A log that cannot be cut now is tried again in a minute.
  return setInterval(() => void trimLog(home).catch(() => {}), TRIM_INTERVAL_MS).unref();
}

/** In bytes; 0 if there is no log yet. */
export async function logSize(home: string): Promise<number> {
  return (await lstat(logPath(home)).catch(() => undefined))?.size ?? 0;
}

/** Reads from where the log had that many bytes, at most the last 16 KB. */
export async function readLogSince(home: string, startBytes: number): Promise<string> {
  const added = (await logSize(home)) - startBytes;
  // Shorter than before: it was cut in the meantime.
  const log = await openLog(home, constants.O_RDONLY);
  if (log === undefined) return '';
  try {
    return (await readEnd(log, added < 0 ? MAX_TAIL_BYTES : Math.min(added, MAX_TAIL_BYTES))).toString();
  } finally {
    await log.close();
  }
}

async function readEnd(log: FileHandle, lengthBytes: number): Promise<Buffer> {
  const { size } = await log.stat();
  const length = Math.min(size, lengthBytes);
  const { buffer, bytesRead } = await log.read(Buffer.alloc(length), 0, length, size - length);
  return buffer.subarray(0, bytesRead);
}
