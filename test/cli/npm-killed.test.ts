import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { isRunning } from '../../src/core/runtime/processes.ts';
import { eventually } from '../support/service.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** Runs the devnet with `npm run` in a new process group until it serves. Returns the process ids of npm and of every process below it. */
async function startByNpm(): Promise<{ npm: number; below: number[] }> {
  const args = ['run', '--silent', 'quittance', '--', 'devnet', '--in-memory', '--port', '0', '--block-ms', '60000'];
  const inherited = Object.entries(process.env).filter(([name]) => !/^(QUITTANCE_|DATABASE_|PG|npm_)/.test(name));
  const child = spawn('npm', args, {
    cwd: ROOT,
    env: Object.fromEntries(inherited),
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const npm = child.pid;
  if (npm === undefined) throw new Error('npm cannot be started');
  onTestFinished(() => {
    try {
      process.kill(-npm, 'SIGKILL');
    } catch {
      // No process is left, as expected.
    }
  });
  await once(createInterface(child.stdout), 'line');
  return { npm, below: descendants(npm) };
}

function descendants(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .trim()
    .split(' ')
    .filter(Boolean)
    .map(Number);
  return children.flatMap((child) => [child, ...descendants(child)]);
}

// Listing processes requires /proc.
test.skipIf(process.platform !== 'linux').each(['npm', 'the process between npm and Node'])(
  'when %s is killed, nothing below it runs on',
  async (victim) => {
    const { npm, below } = await startByNpm();
    expect(below.length).toBeGreaterThan(0);
    process.kill(victim === 'npm' ? npm : (below[0] ?? 0), 'SIGKILL');
    await eventually(
      () => below.filter(isRunning),
      (alive) => alive.length === 0,
    );
  },
);
