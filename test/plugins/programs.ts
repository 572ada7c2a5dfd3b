import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { eventually, type Json } from '../support/service.ts';
import { findSteadyPort } from '../support/steady-port.ts';

const PROGRAM = resolve(import.meta.dirname, 'programs/shop.php');

export type PhpShop = {
  url: string;
  /** Calls a method of the client. Returns its answer, or the error that it threw. */
  ask(method: string, ...parameters: unknown[]): Promise<Json>;
  stop(): Promise<void>;
};

/** Starts a small PHP shop that uses the client. Its state is in `folder`. */
export async function startPhpShop(folder: string, settings: { url: string; apiKey: string }): Promise<PhpShop> {
  const port = await findSteadyPort();
  const url = `http://127.0.0.1:${port}`;
  const server = spawn('php', ['-S', `127.0.0.1:${port}`, PROGRAM], {
    env: {
      PATH: process.env['PATH'],
      PHP_CLI_SERVER_WORKERS: '6',
      SHOP_FOLDER: folder,
      QUITTANCE_URL: settings.url,
      QUITTANCE_API_KEY: settings.apiKey,
    },
    stdio: 'ignore',
    detached: true,
  });
  await eventually(
    () => fetch(url).catch(() => null),
    (answer) => answer !== null,
  );
  return {
    url,
    ask: async (method, ...parameters) => {
      const answer = await fetch(`${url}/${method}`, { method: 'POST', body: JSON.stringify(parameters) });
      return answer.json();
    },
    stop: async () => {
      const ended = once(server, 'close');
      // Its workers belong to its process group.
      if (server.pid !== undefined) process.kill(-server.pid, 'SIGTERM');
      await ended;
    },
  };
}
