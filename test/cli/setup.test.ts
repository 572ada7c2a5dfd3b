import { readFileSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { newDirectory, runCli } from './run-cli.ts';

test('setup writes a private file once, and never over another', async () => {
  const output = join(newDirectory(), '.env');
  const first = await runCli(['setup', '--site', 'pay.example.com', '--output', output]);
  expect(first).toMatchObject({ code: 0, stderr: expect.stringContaining('docker compose up') });
  expect(statSync(output).mode & 0o777).toBe(0o600);
  const text = readFileSync(output, 'utf8');
  // No secret is printed.
  for (const [, secret = ''] of text.matchAll(/^\w*(?:PASSWORD|KEY)=(.+)$/gm))
    expect(first.stdout).not.toContain(secret);
  expect(await runCli(['setup', '--site', 'pay.example.com', '--output', output])).toMatchObject({
    ...{ code: 4, stderr: expect.stringContaining('nothing was written') },
  });
  expect(readFileSync(output, 'utf8')).toBe(text);
});

test('setup follows no link that leads nowhere', async () => {
  const folder = newDirectory();
  symlinkSync(join(folder, 'elsewhere'), join(folder, '.env'));
  expect((await runCli(['setup', '--site', 'pay.example.com', '--output', join(folder, '.env')])).code).toBe(4);
});
