import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTestProject, type TestService, untilStatus } from '../support/service.ts';
import { deliver, forge, type WebhookRequest } from './forged-webhooks.ts';
import { EXAMPLES, isPresent } from './program.ts';
import { eventOf, pay } from './receiver-story.ts';

const SECRET = `whsec_${Buffer.alloc(24, 0x9f).toString('base64')}`;
const NEEDED = 'curl --version && openssl version && ((BASH_VERSINFO >= 4))';

/** Describes what the shell example must do. `conflict` is the code of an idempotency conflict. */
export function describeShell(service: () => TestService, conflict = 'IDEMPOTENCY_CONFLICT'): void {
  if (!isPresent({ probe: ['bash', '-c', NEEDED] })) {
    describe('in a shell', () => {
      test.skip('not run, because this machine has not bash 4, curl and openssl', () => undefined);
    });
    return;
  }
  describe.concurrent('in a shell', () => {
    let shop: TestService;
    let folder: string;
    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'quittance-example-'));
      shop = { ...service(), project: await createTestProject(service().db) };
    });
    afterAll(() => rm(folder, { recursive: true, force: true }));

    const run = async (...values: string[]) => {
      const env = {
        PATH: process.env['PATH'],
        QUITTANCE_URL: shop.url,
        QUITTANCE_API_KEY: shop.project.apiKey,
        QUITTANCE_WEBHOOK_SECRET: SECRET,
      };
      const done = promisify(execFile)('bash', [join(EXAMPLES, 'curl/quittance.sh'), ...values], { cwd: folder, env });
      return done.then(
        ({ stdout }) => ({ code: 0, stdout, stderr: '' }),
        ({ code, stdout, stderr }) => ({ code, stdout, stderr }),
      );
    };
    const verify = async (name: string, { headers, body }: WebhookRequest, ...at: string[]) => {
      const lines = Object.entries(headers).flatMap(([key, value]) =>
        [value].flat().map((one) => `${key}: ${one}\r\n`),
      );
      await writeFile(join(folder, `${name}.headers`), lines.join(''));
      await writeFile(join(folder, `${name}.body`), body);
      return run('verify', `${name}.headers`, `${name}.body`, ...at);
    };

    test.sequential('an order is created once, is paid, and stands in the feed', async () => {
      const [first, again] = [await run('create', 'order-1', '25.00'), await run('create', 'order-1', '25.00')];
      expect(again).toEqual(first);
      const { invoiceId } = JSON.parse(first.stdout);
      expect(await run('create', 'order-1', '26.00')).toMatchObject({
        code: 1,
        stderr: expect.stringContaining(conflict),
      });
      expect(await run('is-paid', invoiceId, 'order-1')).toMatchObject({ code: 1 });
      await pay(shop, invoiceId);
      await untilStatus(shop, invoiceId, 'PAID');
      expect(await run('is-paid', invoiceId, 'order-1')).toMatchObject({ code: 0 });
      expect(await run('is-paid', invoiceId, 'order-2')).toMatchObject({ code: 1 });
      expect(JSON.parse((await run('read', invoiceId)).stdout)).toMatchObject({ invoiceId, status: 'PAID' });
      const { id } = await eventOf(shop, invoiceId);
      expect((await run('feed')).stdout).toContain(id);
      expect(JSON.parse((await run('feed', id)).stdout)).toMatchObject({ data: [], hasMore: false });
    });

    test.sequential('a captured webhook is found genuine or not', async () => {
      const event = { id: 'evt_1', type: 'invoice.paid', sequence: 1, data: { externalId: 'Grüße ₮\n' } };
      const genuine = deliver(event, SECRET, 1_800_000_000);
      expect(await verify('genuine', genuine, '1800000299')).toMatchObject({ code: 0, stdout: 'genuine: evt_1\n' });
      expect(await verify('later', genuine)).toMatchObject({ code: 1 });
      const command = await verify('command', genuine, 'PATH[$(echo run >&2)0]');
      expect(command).toEqual({ code: 1, stdout: '', stderr: 'error: AT must be Unix seconds\n' });
      const forged = Object.entries(forge(event, SECRET));
      const judged = await Promise.all(
        forged.map(async ([name, webhook], index) => ({ name, ...(await verify(`forged-${index}`, webhook)) })),
      );
      expect(judged.filter(({ code, stderr }) => code !== 1 || !stderr.startsWith('error: '))).toEqual([]);
    });
  });
}
