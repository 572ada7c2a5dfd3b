import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { deliver } from './forged-webhooks.ts';

const PAGE = resolve(import.meta.dirname, '../../docs/reference/webhooks.md');
const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

test('the code of docs/reference/webhooks.md accepts what is genuine, and nothing at all where the secret is missing', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'quittance-page-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const blocks = (await readFile(PAGE, 'utf8')).split('```');
  const code = blocks.find((block) => block.includes('export function isGenuine'))?.replace(/^js/, '');
  const file = join(folder, 'page.mjs');
  await writeFile(file, code ?? '');
  const { isGenuine } = await import(pathToFileURL(file).href);
  const { body, headers } = deliver({ id: 'evt_1' }, SECRET);
  expect(isGenuine(Buffer.from(body), headers, SECRET)).toBe(true);
  expect(isGenuine(Buffer.from(`${body} `), headers, SECRET)).toBe(false);
  for (const secret of ['', 'whsec_', 'whsec_…', 'test', SECRET.slice('whsec_'.length)]) {
    const forged = deliver({ id: 'evt_1' }, secret);
    expect(() => isGenuine(Buffer.from(forged.body), forged.headers, secret)).toThrow('the webhook secret is missing');
  }
});
