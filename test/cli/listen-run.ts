import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { runListen as runCommand } from '../../src/cli/developer/listen.ts';
import type { Terminal } from '../../src/cli/terminal/terminal.ts';
import { eventBody } from '../../src/core/domain/event.ts';
import { encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import type { Database } from '../../src/core/store/db/database.ts';
import { insertEvents } from '../../src/core/store/outbox/events.ts';
import type { ListenOptions } from '../../src/developer/listen/listen.ts';
import { eventually, type Json } from '../support/service.ts';
import { recordTerminal } from '../support/terminal.ts';
import { newDirectory } from './run-cli.ts';

export type Recorded = { id: string; body: string };

/** Records events of a project as payments would, and returns their ids and bodies in order. */
export async function recordEvents(
  db: Database,
  project: { id: string },
  count: number,
  type: 'ping' | 'invoice.paid' = 'ping',
): Promise<Recorded[]> {
  const now = unixMs(Date.now());
  const events = Array.from({ length: count }, (_, index) => {
    const event = { id: uuidV7(now, randomBytes(10), index), type, projectId: project.id, sequence: 1 };
    const data = { invoiceId: `inv_${index}`, externalId: 'Zoë\u2028 "7"\\ 😀\u001b[2J\u009b\u202e' };
    return { ...event, invoiceId: null, transferId: null, body: eventBody({ ...event, timestamp: now, data }) };
  });
  await db.transaction((tx) => insertEvents(tx, 'devnet', events, now));
  return events.map(({ id, body }) => ({ id: encodeId('evt', id), body }));
}

type Arrival = { id: string; headers: IncomingMessage['headers']; body: string };
export type Answering = (arrival: Arrival, response: ServerResponse) => void;

/** Starts a developer's server. Its answers may change while it runs. */
export async function startReceiver(answering: Answering = (_arrival, response) => response.end()) {
  const arrivals: Arrival[] = [];
  const receiver = {
    url: '',
    port: 0,
    arrivals,
    answering,
    ids: () => arrivals.map(({ id }) => id),
    close: async () => {},
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const { headers } = request;
      const arrival = { id: String(headers['webhook-id']), headers, body: Buffer.concat(chunks).toString() };
      arrivals.push(arrival);
      receiver.answering(arrival, response);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  receiver.port = (server.address() as AddressInfo).port;
  receiver.url = `http://127.0.0.1:${receiver.port}/hook`;
  receiver.close = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  onTestFinished(receiver.close);
  return receiver;
}

export type ListenPlace = { server: string; home?: string; json?: boolean };

/** Runs `quittance listen --json` in this process. */
export function runListen(
  apiKey: string,
  options: ListenOptions,
  { server, home = newDirectory(), json = true }: ListenPlace,
) {
  const controller = new AbortController();
  const notes: string[] = [];
  const env = { XDG_STATE_HOME: home, QUITTANCE_API_KEY: apiKey, QUITTANCE_URL: server };
  const recorded = recordTerminal({ json, env, isTTY: true });
  const terminal: Terminal = { ...recorded, note: (text) => notes.push(text) };
  const ended = runCommand(terminal, options, { signal: controller.signal, pollMs: 20 });
  const failure = ended.then(
    () => null,
    (error: Error) => error,
  );
  const stop = async () => {
    controller.abort();
    await ended;
  };
  onTestFinished(() => {
    controller.abort();
    return failure.then(() => undefined);
  });
  const lines = () => recorded.written.stdout.split('\n').slice(0, -1);
  const records = () => lines().map((line) => JSON.parse(line) as Json);
  return {
    home,
    lines,
    notes,
    records,
    stop,
    abort: () => controller.abort(),
    /** The error that it ends with, or `null`. */
    failure,
    ready: () =>
      eventually(
        () => stateFiles(home),
        (files) => files.length === 1,
      ),
    secret: () => records()[0].secret as string,
  };
}

export function stateFiles(home: string): string[] {
  const dir = `${home}/quittance/listen`;
  try {
    return readdirSync(dir)
      .filter((name) => name.endsWith('.json'))
      .map((name) => `${dir}/${name}`);
  } catch {
    return [];
  }
}
