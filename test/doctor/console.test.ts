import { afterAll, beforeAll, expect, test } from 'vitest';
import { startConsoleOver } from '../admin/console-service.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

test('an owner sees in the console what the doctor finds around its process, and what to do', async () => {
  const sandboxToken = 's'.repeat(43);
  const { url } = await startConsoleOver(service.connectionString, { sandboxToken });
  const ask = () => fetch(`${url}/settings/doctor`, { headers: { cookie: `quittance=${sandboxToken}` } });
  const [first, second] = await Promise.all([ask(), ask()]);
  const text = await first.text();
  expect([first.status, second.status]).toEqual([200, 200]);
  // Shows what it knows about the database, the ledger and the projects, even if no service is listening.
  for (const name of ['database', 'migrations', 'capacity', 'support-contact', 'service']) {
    expect(text).toContain(`<span class="rank">${name}</span>`);
  }
  expect(text).toContain('this process has no API, or its port is not fixed');
  expect(text).toContain('has no support contact');
});
