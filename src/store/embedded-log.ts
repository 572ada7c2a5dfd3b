import { open, stat, truncate, writeFile } from 'node:fs/promises';
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
  const tail = await readEnd(home, KEPT_LOG_BYTES);
  await truncate(logPath(home));
  await writeFile(logPath(home), tail, { flag: 'a' });
}

/** Cuts the log once a minute until the returned timer is cleared; the timer does not keep the process alive. */
export function trimLogRegularly(home: string): NodeJS.Timeout {
  // A log that cannot be cut now is tried again in a minute.
  return setInterval(() => void trimLog(home).catch(() => {}), TRIM_INTERVAL_MS).unref();
}

/** In bytes; 0 if there is no log yet. */
export async function logSize(home: string): Promise<number> {
  return (await stat(logPath(home)).catch(() => undefined))?.size ?? 0;
}

/** What was written since the log had that many bytes, at most the last 16 KB. */
export async function readLogSince(home: string, startBytes: number): Promise<string> {
  const added = (await logSize(home)) - startBytes;
  // Shorter than before: it was cut in the meantime.
  return (await readEnd(home, added < 0 ? MAX_TAIL_BYTES : Math.min(added, MAX_TAIL_BYTES))).toString();
}

async function readEnd(home: string, lengthBytes: number): Promise<Buffer> {
  const handle = await open(logPath(home)).catch(() => undefined);
  if (handle === undefined) return Buffer.alloc(0);
  try {
    const { size } = await handle.stat();
    const length = Math.min(size, lengthBytes);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, size - length);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}
