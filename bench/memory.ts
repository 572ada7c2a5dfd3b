import { setTimeout as delay } from 'node:timers/promises';
import type { PostgresConnection } from '../src/core/store/embedded/connection.ts';
import { type Child, startService } from './child.ts';
import { onServer } from './databases.ts';
import { descendants, residentBytes } from './proc.ts';

/** The resident memory of an idle API process in bytes. `helpers` is that of the processes that it started. */
export type Memory = { atStart: number; settled: number; helpers: number };

/** Measures an API process without requests. */
export async function measureMemory(options: {
  command: string;
  postgres: PostgresConnection;
  settleSeconds: number;
  onStart(child: Child): void;
}): Promise<Memory> {
  const { command, postgres, settleSeconds, onStart } = options;
  await onServer(postgres, (client) => client.query('create database idle'));
  const server = await startService(command, { ...postgres, database: 'idle' });
  onStart(server);
  const atStart = await residentBytes(server.pid);
  await delay(settleSeconds * 1000);
  const settled = await residentBytes(server.pid);
  const helpers = await Promise.all((await descendants(server.pid)).map(residentBytes));
  await server.stop();
  return { atStart, settled, helpers: helpers.reduce((sum, bytes) => sum + bytes, 0) };
}
