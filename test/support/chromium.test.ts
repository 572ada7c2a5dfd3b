import type { Browser } from 'playwright-core';
import { PNG } from 'pngjs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launchChromium } from './chromium.ts';

let browser: Browser;
beforeAll(async () => {
  browser = await launchChromium();
});
afterAll(() => browser?.close());

test('renders a page with text, runs its script and takes a screenshot', async () => {
  const page = await browser.newPage({ viewport: { width: 200, height: 100 } });
  await page.goto(
    'data:text/html,<body style="margin:0;background:rgb(10,200,30)"><p>Pay 25</p><script>document.title="ran"</script>',
  );
  expect(await page.title()).toBe('ran');
  expect(await page.textContent('p')).toBe('Pay 25');
  const image = PNG.sync.read(await page.screenshot());
  expect([image.width, image.height]).toEqual([200, 100]);
  expect([...image.data.subarray(0, 3)]).toEqual([10, 200, 30]);
  const glyphPixels = image.data.filter((value, index) => index % 4 === 0 && value < 5);
  expect(glyphPixels.length).toBeGreaterThan(20);
});

test.each([
  ['Arabic', 'دفعتك'],
  ['Chinese', '付款'],
])('%s has a font: characters without one would be drawn as nothing', async (_, text) => {
  const page = await browser.newPage({ viewport: { width: 200, height: 100 } });
  await page.goto(`data:text/html;charset=utf-8,<p>${text}`);
  const image = PNG.sync.read(await page.screenshot());
  expect(image.data.filter((value, index) => index % 4 === 0 && value < 5).length).toBeGreaterThan(20);
  await page.close();
});

test('a second browser starts next to the first', async () => {
  const second = await launchChromium();
  expect(second.version()).toBe(browser.version());
  await second.close();
});
