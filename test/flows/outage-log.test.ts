import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect } from 'vitest';
import { createLogger } from '../../src/core/runtime/log.ts';
import { type DatabaseLink, startDatabaseLink } from '../support/database-link.ts';
import { call, createInvoice, eventually, startTestService, type TestService } from '../support/service.ts';
import { longTest } from '../support/some-cases.ts';

/** A whole process with every role, because the log of an outage must not fill the disk. */
let service: TestService;
let link: DatabaseLink;
const lines: string[] = [];
const log = createLogger({ level: 'info', destination: { write: (line: string) => void lines.push(line) } });
beforeEach(async () => {
  lines.length = 0;
  service = await startTestService({
    ...{ log, blockMs: 200 },
    through: async (connection) => {
      link = await startDatabaseLink(connection);
      return link.connection;
    },
  });
});
afterEach(async () => {
  await service.stop();
  await link.stop();
});

/** A message is logged at once, once more if the outage began shortly before the end of a minute, and then once a minute. */
const mostIn = (ms: number) => 2 + Math.floor(ms / 60_000);

/** Groups equal log messages, with their number and the bytes of one. */
function told(): { name: string; count: number; bytes: number }[] {
  const found = new Map<string, { name: string; count: number; bytes: number }>();
  for (const line of lines) {
    const { msg, method, route, code, reason, err } = JSON.parse(line);
    const name = [msg, method, route, code, reason, err?.message].filter((part) => part !== undefined).join(' ');
    const before = found.get(name) ?? { name, count: 0, bytes: 0 };
    found.set(name, { name, count: before.count + 1, bytes: Math.max(before.bytes, line.length) });
  }
  return [...found.values()];
}

longTest(
  'an outage of the database: a thousand requests and all that runs by itself write each line once a minute',
  async () => {
    expect((await createInvoice(service)).status).toBe(201);
    lines.length = 0;
    link.setMode('refuse');
    // The longest retry pause is 5 s, so each retry has run several times.
    const startedMs = performance.now();
    let asked = 0;
    while (performance.now() - startedMs < 17_000 || asked < 1000) {
      const path = ['/v1/invoices/inv_1', '/v1/events', '/readyz'][asked % 3];
      await call(`${service.url}${path}`, { headers: { 'X-Api-Key': service.project.apiKey } });
      await createInvoice(service, { body: { externalId: randomUUID() } });
      asked += 2;
    }
    const most = mostIn(performance.now() - startedMs);
    expect(told().filter(({ count }) => count > most)).toEqual([]);
    expect(told().length).toBeGreaterThan(3);
    link.setMode('open');
    await eventually(
      () => createInvoice(service),
      ({ status }) => status === 201,
    );
  },
);
