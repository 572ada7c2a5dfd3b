import { spawn, spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { eventually } from '../support/service.ts';

/** Returns why this machine can't trace system calls, or `null`. */
export function whyNoStrace(): string | null {
  const tried = spawnSync('strace', ['-o', '/dev/null', 'true'], { encoding: 'utf8' });
  if (tried.error !== undefined) return 'strace is not installed';
  return tried.status === 0 ? null : `strace may not trace here: ${tried.stderr.trim().split('\n')[0]}`;
}

/** Calls that write to files and sockets, and calls that make written files durable. */
const CALLS = 'trace=write,writev,pwrite64,pwritev,sendto,sendmsg,fsync,fdatasync,sync_file_range,openat';
/** Longer than a single write to the write-ahead log. */
const MAX_STRING = 262_144;

/** Traces running processes and their children. `end` returns the lines in the order of the calls. */
export async function startTrace(pids: readonly number[], file: string): Promise<{ end(): Promise<string[]> }> {
  const child = spawn(
    'strace',
    ['-f', '-y', '-s', String(MAX_STRING), '-e', CALLS, '-o', file, ...pids.flatMap((pid) => ['-p', String(pid)])],
    { stdio: 'ignore' },
  );
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const end = async () => {
    // strace detaches from the processes.
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

/** Reads proc_pid_status(5). A process that has ended counts as traced. */
async function isTraced(pid: number): Promise<boolean> {
  const text = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => null);
  return text === null || !/^TracerPid:\s+0$/m.test(text);
}

/**
 * Checks for each token in a created row that it was written to the write-ahead log (pg_wal), that the file was then flushed, and that only
 * after that the 201 with the token was sent to a socket. Lines of strace: `71 pwrite64(7</data/pg_wal/000000010000000000000001>,
 * "\26\321…order-1…", 8192, 24576) = 8192`, `71 fdatasync(7</data/pg_wal/000000010000000000000001>) = 0`, or in two parts, `71
 * fdatasync(7</…> <unfinished ...>` and `71 <... fdatasync resumed>) = 0`, and `60 write(24<TCP:[…]>, "HTTP/1.1 201 Created\r\n…order-1…",
 * 512) = 512`.
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

/** From the line where a flush of a log file began to the line where it was done. */
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
