import { spawn, spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { eventually } from '../support/service.ts';

/** Why this machine cannot show what processes ask of the kernel, or `null` if it can. */
export function whyNoStrace(): string | null {
  const tried = spawnSync('strace', ['-o', '/dev/null', 'true'], { encoding: 'utf8' });
  if (tried.error !== undefined) return 'strace is not installed';
  return tried.status === 0 ? null : `strace may not trace here: ${tried.stderr.trim().split('\n')[0]}`;
}

/** Everything that writes to files and sockets, and everything that makes written files durable. */
const CALLS = 'trace=write,writev,pwrite64,pwritev,sendto,sendmsg,fsync,fdatasync,sync_file_range,openat';
/** Longer than what is written of the journal at once. */
const MAX_STRING = 262_144;

/** Watches running processes, and those that they start. `end` returns the lines, in the order in which the kernel was asked. */
export async function startTrace(pids: readonly number[], file: string): Promise<{ end(): Promise<string[]> }> {
  const child = spawn(
    'strace',
    ['-f', '-y', '-s', String(MAX_STRING), '-e', CALLS, '-o', file, ...pids.flatMap((pid) => ['-p', String(pid)])],
    { stdio: 'ignore' },
  );
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const end = async () => {
    // It lets go of what it traces.
    child.kill('SIGINT');
    await ended;
    return (await readFile(file, 'utf8')).split('\n');
  };
  try {
    for (const pid of pids)
      await eventually(
        () => isTraced(pid),
        (traced) => traced,
      );
  } catch (error) {
    await end();
    throw error;
  }
  return { end };
}

/** proc_pid_status(5). A process that ended is not missed. */
async function isTraced(pid: number): Promise<boolean> {
  const text = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => null);
  return text === null || !/^TracerPid:\s+0$/m.test(text);
}

/**
 * For each token that stands in a created row: whether it was written to the journal (pg_wal), whether that file was then flushed, and
 * only after that the answer 201 with the token was handed to a socket. Lines of strace:
 * `71 pwrite64(7</data/pg_wal/000000010000000000000001>, "\26\321…order-1…", 8192, 24576) = 8192`,
 * `71 fdatasync(7</data/pg_wal/000000010000000000000001>) = 0`, or in two parts, `71 fdatasync(7</…> <unfinished ...>` and
 * `71 <... fdatasync resumed>) = 0`, and `60 write(24<TCP:[…]>, "HTTP/1.1 201 Created\r\n…order-1…", 512) = 512`.
 */
export function findUnflushed(lines: readonly string[], tokens: readonly string[]): string[] {
  const flushes = findFlushes(lines);
  return tokens.flatMap((token) => {
    const written = lines.findIndex(
      (line) => /^\d+ +p?write(v|64)?\(/.test(line) && line.includes('/pg_wal/') && line.includes(token),
    );
    const answered = lines.findIndex((line) => line.includes('HTTP/1.1 201 Created') && line.includes(token));
    if (answered < 0) return [`${token}: no answer was seen`];
    if (written < 0 || written > answered) return [`${token}: answered before it was written to the journal`];
    const file = walFile(lines[written]);
    const isFlushed = flushes.some(({ from, to, of }) => of === file && from > written && to < answered);
    return isFlushed ? [] : [`${token}: answered before the journal was flushed`];
  });
}

type Flush = { from: number; to: number; of: string | undefined };

/** From the line on which a flush of a journal file began to the line on which it was done. */
function findFlushes(lines: readonly string[]): Flush[] {
  const open = new Map<string, Flush>();
  return lines.flatMap((line, index) => {
    const pid = line.split(' ', 1)[0] ?? '';
    if (/^\d+ +f(data)?sync\(/.test(line) && line.includes('/pg_wal/')) {
      const flush = { from: index, to: index, of: walFile(line) };
      if (/\) += 0$/.test(line)) return [flush];
      open.set(pid, flush);
    }
    if (/<\.\.\. f(data)?sync resumed>\) += 0$/.test(line)) {
      const begun = open.get(pid);
      open.delete(pid);
      return begun === undefined ? [] : [{ ...begun, to: index }];
    }
    return [];
  });
}

function walFile(line: string | undefined): string | undefined {
  return /<([^>]*\/pg_wal\/[0-9A-F]{24})>/.exec(line ?? '')?.[1];
}
