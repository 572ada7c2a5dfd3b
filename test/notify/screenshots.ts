import { stat } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { html } from '../../src/faces/web/html.ts';
import { launchChromium } from '../support/chromium.ts';
import { createWorld, eventually, startMailServer } from './fixture.ts';

const PICTURE = fileURLToPath(new URL('../../docs/images/notification-mail.png', import.meta.url));
/** Keeps the page quick to load. */
const MAX_BYTES = 150_000;

/** Returns the headers and text of a mail as it was sent, in quoted-printable or plain form. */
function readMail(source: string): { headers: [string, string][]; text: string } {
  const [head = '', ...rest] = source.replaceAll('\r\n', '\n').split('\n\n');
  const headers = head
    .replace(/\n[ \t]+/g, ' ')
    .split('\n')
    .map((line): [string, string] => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]);
  const body = rest.join('\n\n');
  if (!headers.some(([name, value]) => /^content-transfer-encoding$/i.test(name) && value === 'quoted-printable'))
    return { headers, text: body };
  const bytes = body
    .replace(/=\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return { headers, text: Buffer.from(bytes, 'latin1').toString('utf8') };
}

test('the picture of a mail: what the mail server of the tests took, shown as it is', {
  timeout: 120_000,
}, async () => {
  const world = await createWorld();
  const { mails, port } = await startMailServer();
  const mail = { from: 'quittance@example.com', to: ['ops@example.com'] };
  await world.addChannel('email', { ...mail, url: `smtp://quittance:secret@127.0.0.1:${port}` });
  world.start({ installation: { name: 'pay.example.com', consoleUrl: 'https://console.example.com' } });
  await world.raise(
    'blind',
    '',
    'no devnet node has shown a new block for 60 s: nothing is confirmed, and nothing expires',
  );
  await eventually(() => expect(mails).toHaveLength(1));
  const { headers, text } = readMail(mails[0]?.text ?? '');
  const shown = headers.filter(([name]) => /^(From|To|Subject|Date|Message-ID|Auto-Submitted|Importance)$/i.test(name));
  const rows = shown.map(([name, value]) => html`<tr><th>${name}</th><td>${value}</td></tr>`);
  const page = html`<!doctype html><meta charset="utf-8"><style>body{margin:0;padding:24px;width:760px;font:15px/1.5 system-ui,sans-serif;color:#1b1f24;background:#fff}
th{text-align:left;font-weight:500;color:#57606a;padding:2px 16px 2px 0;vertical-align:top}td{overflow-wrap:anywhere}pre{font:inherit;white-space:pre-wrap;border-top:1px solid #d0d7de;margin:16px 0 0;padding-top:16px}</style><table>${rows}</table><pre>${text.trim()}</pre>`;
  const browser = await launchChromium();
  const tab = await browser.newPage({ viewport: { width: 808, height: 100 } });
  await tab.setContent(page.html);
  await tab.screenshot({ path: PICTURE, fullPage: true });
  await browser.close();
  expect((await stat(PICTURE)).size).toBeLessThan(MAX_BYTES);
});
