import { mkdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PNG } from 'pngjs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type CheckoutTest,
  expire,
  finalise,
  goBlind,
  newInvoice,
  openPage,
  orphan,
  payInto,
  START_TIMEOUT_MS,
  seeAgain,
  startCheckoutTest,
} from './checkout.ts';

/**
 * Draws docs/images/checkout.png: the page on a phone, waiting and paid, side by side. With QUITTANCE_SCREENSHOTS=<directory> it
 * also draws every state there, on a phone and on a desktop, light and dark.
 */
const IMAGE = fileURLToPath(new URL('../../docs/images/checkout.png', import.meta.url));
const everyState = process.env['QUITTANCE_SCREENSHOTS'];
/** So that the README stays quick to load. */
const MAX_BYTES = 120 * 1024;
const PHONE = { width: 390, height: 844 };
const DESKTOP = { width: 1280, height: 900 };

let checkout: CheckoutTest;
beforeAll(async () => {
  checkout = await startCheckoutTest();
}, START_TIMEOUT_MS);
afterAll(() => checkout.stop());

test('the picture of the README', { timeout: 120_000 }, async () => {
  const { service } = checkout;
  const invoice = await newInvoice(service);
  const waiting = await shoot(invoice.url, 'waiting');
  await payInto(service, invoice);
  await shoot(invoice.url, 'confirming');
  await orphan(service, invoice);
  await shoot(`${invoice.url}?seen=payment`, 'gone');
  await payInto(service, invoice);
  await finalise(service, invoice);
  const paid = await shoot(invoice.url, 'paid');
  await writeFile(
    IMAGE,
    PNG.sync.write(sideBySide([waiting, paid]), { colorType: 2, filterType: 0, deflateStrategy: 0 }),
  );
  expect((await stat(IMAGE)).size).toBeLessThan(MAX_BYTES);
  const late = await newInvoice(service, '1499.90');
  await expire(service, late);
  await shoot(late.url, 'expired');
  const unseen = await newInvoice(service, '123456789012');
  goBlind(service);
  await shoot(unseen.url, 'blind');
  seeAgain(service);
  await shoot(`${service.url}/c/cut`, 'not-found');
});

/** The page on a phone, light; the others are written where the environment says. */
async function shoot(url: string, name: string): Promise<PNG> {
  const draw = async (
    viewport: { width: number; height: number },
    colorScheme: 'light' | 'dark',
    forcedColors: 'active' | 'none' = 'none',
  ) => {
    const { page, close } = await openPage(checkout.browser, url, { viewport, colorScheme, forcedColors });
    const image = await page.screenshot({ fullPage: true });
    await close();
    return image;
  };
  const phone = await draw(PHONE, 'light');
  if (everyState !== undefined) {
    await mkdir(everyState, { recursive: true });
    await writeFile(join(everyState, `${name}-phone.png`), phone);
    await writeFile(join(everyState, `${name}-phone-dark.png`), await draw(PHONE, 'dark'));
    await writeFile(join(everyState, `${name}-320.png`), await draw({ width: 320, height: 640 }, 'light'));
    await writeFile(join(everyState, `${name}-forced.png`), await draw(PHONE, 'dark', 'active'));
    await writeFile(join(everyState, `${name}-desktop.png`), await draw(DESKTOP, 'light'));
  }
  return PNG.sync.read(phone);
}

function sideBySide(images: [PNG, ...PNG[]]): PNG {
  const height = Math.max(...images.map((image) => image.height));
  const all = new PNG({ width: images.reduce((sum, { width }) => sum + width, 0), height });
  // The ground of the page goes on below the shorter one.
  for (let i = 0; i < all.data.length; i += 4) images[0].data.copy(all.data, i, 0, 4);
  let x = 0;
  for (const image of images) {
    PNG.bitblt(image, all, 0, 0, image.width, image.height, x, 0);
    x += image.width;
  }
  return all;
}
