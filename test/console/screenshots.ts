import { stat, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { PNG } from 'pngjs';
import { expect, test } from 'vitest';
import { launchChromium } from '../support/chromium.ts';
import { newInvoice, payInFull, send, startTestConsole, writeHistory } from './console.ts';

const FOLDER = fileURLToPath(new URL('../../docs/images/', import.meta.url));
/** Keeps the pages quick to load. */
const MAX_BYTES = 150_000;

/** The documentation's pictures: a shop's month, an invoice that was paid twice, and the results of a fee and a typing mistake. */
test('the pictures of the console', { timeout: 180_000 }, async () => {
  const shown = await startTestConsole();
  const { service } = shown;
  await writeHistory(service, service.project, (day) => [4, 2, 5, 3, 4, 1, 6, 7][day % 8] ?? 1);
  const [twice, fee, other] = [
    await newInvoice(service, 'order-1041', '49.90'),
    await newInvoice(service, 'order-1042', '120.00'),
    await newInvoice(service, 'order-1043'),
  ];
  await payInFull(service, twice);
  await send(
    service,
    { to: twice.address, amountMicro: twice.amountMicro },
    { to: fee.address, amountMicro: fee.amountMicro - 1_000_000n },
    { to: other.address, amountMicro: 25_000_000n },
    { to: other.address, amountMicro: 7n },
  );
  const endpoint = `/webhooks/${/whe_[0-9a-z]{26}/.exec((await shown.get('/webhooks')).text)?.[0]}`;
  const browser = await launchChromium();
  const shots = [
    { name: 'today', path: '/', look: {} },
    { name: 'invoice', path: `/invoices/${twice.invoiceId}`, look: {} },
    { name: 'unmatched', path: '/unmatched', look: { colorScheme: 'dark' } },
    { name: 'invoices', path: '/invoices', look: {} },
    { name: 'webhooks', path: endpoint, look: {} },
    { name: 'addresses', path: '/addresses', look: {} },
    { name: 'chain', path: '/chain', look: {} },
    { name: 'reports', path: '/reports', look: {} },
    { name: 'requests', path: '/requests', look: {} },
    { name: 'settings', path: '/settings/project', look: {} },
    { name: 'phone', path: '/', look: { viewport: { width: 390, height: 844 } } },
  ] as const;
  for (const { name, path, look } of shots) {
    const context = await browser.newContext({
      ...{ viewport: { width: 1280, height: 960 }, extraHTTPHeaders: { 'x-actor': 'ana' } },
      ...look,
    });
    const page = await context.newPage();
    await page.goto(shown.url + path);
    const picture = PNG.sync.read(await page.screenshot());
    const file = `${FOLDER}console-${name}.png`;
    await writeFile(
      file,
      PNG.sync.write(picture, { colorType: 2, deflateLevel: 9, deflateStrategy: 0, filterType: 0 }),
    );
    expect((await stat(file)).size).toBeLessThan(MAX_BYTES);
    await context.close();
  }
  await browser.close();
  await shown.stop();
});
