import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { eventually } from '../support/service.ts';

/** The first start of a shop creates its tables. */
const START_LIMIT_MS = 300_000;
const END_LIMIT_MS = 15_000;

export type ShopProcess = { output(): string; stop(): Promise<void> };

/** Runs a shop, and waits until it reports that it's ready. */
export async function startShop(
  folder: string,
  args: string[],
  env: NodeJS.ProcessEnv,
  ready: string,
): Promise<ShopProcess> {
  const child = spawn(process.execPath, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      output += chunk;
    });
  const ended = once(child, 'close');
  const stop = async () => {
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), END_LIMIT_MS);
    await ended;
    clearTimeout(timer);
  };
  try {
    await eventually(
      () => {
        if (child.exitCode !== null) throw new Error(`the shop ended with ${child.exitCode}: ${output.slice(-5000)}`);
        return output.includes(ready);
      },
      (isReady) => isReady,
      START_LIMIT_MS,
    );
  } catch (error) {
    await stop();
    throw new Error(`the shop did not start: ${output.slice(-5000)}`, { cause: error });
  }
  return { output: () => output, stop };
}
