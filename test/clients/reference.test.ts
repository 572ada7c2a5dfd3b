import { afterAll, beforeAll, expect, test } from 'vitest';
import { plainText, rawHtml } from '../../src/faces/web/html.ts';
import { canRun, runExample } from '../support/run-example.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let page: string;
beforeAll(async () => {
  service = await startTestService();
  page = await (await fetch(`${service.url}/docs`)).text();
});
afterAll(() => service.stop());

// test/contract/reference.test.ts runs curl, JavaScript and Python.
test.for(['php', 'go', 'java'])('the example of the reference in %s creates an invoice', async (language, { skip }) => {
  if (!(await canRun(language))) skip(`this machine cannot run ${language}`);
  const [, code = ''] = new RegExp(`class="${language}">.*?<pre><code>(.*?)</code>`, 's').exec(page) ?? [];
  const said = await runExample(language, plainText(rawHtml(code)), service.project.apiKey);
  expect(said).toMatch(/^201 \{"invoiceId":"inv_[0-9a-z]{26}","externalId":"order-1001"/);
});
