import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { decodeId } from '../../src/core/domain/ids.ts';
import { listOperatorActions } from '../../src/core/store/access/audit-log.ts';
import { findLogo } from '../../src/core/store/ledger/logos.ts';
import { findProject } from '../../src/core/store/ledger/projects.ts';
import { LOGOS } from '../support/logos.ts';
import { newDirectory, openLedger, runCli } from './run-cli.ts';

const { db, env } = await openLedger();

function project(...args: string[]) {
  return runCli(['project', ...args], { env });
}

function newFile(content: Uint8Array | string): string {
  const path = join(newDirectory(), 'logo');
  writeFileSync(path, content);
  return path;
}

const NO_BRAND = { supportContact: null, returnUrl: null, embedOrigins: null, accent: null, logoId: null };

test('a brand is given with the project, shown, changed on record, and taken away', async () => {
  const logo = newFile(LOGOS.png);
  const brand = ['--support', ' help@shop.example ', '--return-url', 'https://Shop.example', '--accent', 'FC0'];
  const create = ['create', '--name', 'Shop', '--network', 'mainnet', ...brand, '--logo', logo, '--json'];
  const { code, json } = await project(...create);
  expect(code).toBe(0);
  const { projectId, logoId } = json;
  expect(json).toMatchObject({
    supportContact: 'help@shop.example',
    returnUrl: 'https://shop.example/',
    accent: '#ffcc00',
    logoId: expect.stringMatching(/^[0-9a-f]{32}$/),
  });
  expect(await findLogo(db, logoId)).toEqual({ type: 'image/png', content: LOGOS.png });

  const shown = (await project('show', projectId)).stdout;
  expect(shown).toMatch(/^support +help@shop\.example$/m);
  expect(shown).toMatch(/^return link +https:\/\/shop\.example\/$/m);
  expect(shown).toMatch(/^accent +#ffcc00; adjusted for contrast: #876a01 on light$/m);
  expect((await project('list', '--json')).json.data).toMatchObject([{ accent: '#ffcc00', logoId }]);

  const update = ['update', projectId, '--by', 'Ann'];
  const changed = await project(...update, '--accent', '#001f5b', '--logo', newFile(LOGOS.webp));
  expect(changed.stdout).toMatch(/^accent +#001f5b; adjusted for contrast: #6891d6 on dark$/m);
  expect(changed.stderr).toContain('including pages for existing invoices');
  expect(changed.stderr).not.toContain('new invoices use this');
  // The same bytes again are the same logo.
  expect((await project(...update, '--logo', logo, '--json')).json).toMatchObject({ logoId, accent: '#001f5b' });

  const none = ['--no-support', '--no-return-url', '--no-accent', '--no-logo'];
  expect((await project(...update, ...none, '--json')).json).toMatchObject(NO_BRAND);
  expect((await project('show', projectId)).stdout).not.toMatch(/^(support|return link|accent|logo)/m);
  const again = await project(...update, ...none);
  expect(again.stderr).toContain('nothing to change');
  const other = expect.stringMatching(/^[0-9a-f]{32}$/);
  expect((await listOperatorActions(db, projectId)).map(({ detail }) => detail)).toEqual([
    { name: 'Shop', network: 'mainnet' },
    { accent: { from: '#ffcc00', to: '#001f5b' }, logoId: { from: logoId, to: other } },
    { logoId: { from: other, to: logoId } },
    {
      supportContact: { from: 'help@shop.example', to: null },
      returnUrl: { from: 'https://shop.example/', to: null },
      accent: { from: '#001f5b', to: null },
      logoId: { from: logoId, to: null },
    },
  ]);
});

test('all that is wrong with a brand is said at once, and nothing is made or changed', async () => {
  const { projectId } = (await project('create', '--name', 'Shop', '--network', 'nile', '--json')).json;
  const wrong = ['--support', 'a\nb', '--return-url', 'javascript:alert(1)', '--accent', 'teal'];
  const args = [...wrong, '--logo', newFile('<svg onload="alert(1)"/>'), '--json'];
  const create = ['create', '--name', ' ', '--network', 'main'];
  const refused = await project(...create, ...args);
  const subjects = refused.json.error.errors.map(({ subject }: { subject: string }) => subject);
  expect(subjects).toEqual(['--name', '--support', '--return-url', '--accent', '--logo', '--network']);
  const { code, json } = await project('update', projectId, ...args);
  expect(code).toBe(2);
  expect(json.error.errors).toMatchObject([
    { message: expect.stringContaining('on one line') },
    { message: expect.stringContaining('is not an https:// URL') },
    { message: expect.stringContaining('--accent is "teal"') },
    { message: expect.stringContaining('is an SVG, which can contain scripts and load other files: save it as PNG') },
  ]);
  expect(await findProject(db, decodeId('prj', projectId) ?? '')).toMatchObject({ accent: null, logoId: null });
});

test.each([
  [
    'https://Shop.Example/, https://b.example:8443  https://shop.example',
    'https://shop.example https://b.example:8443',
  ],
  ['https://bücher.example', 'https://xn--bcher-kva.example'],
])('sites that show the page are kept as a header names them: %s', async (given, kept) => {
  const { json } = await project(
    'create',
    '--name',
    'Shop',
    '--network',
    'mainnet',
    '--embed-origins',
    given,
    '--json',
  );
  expect(json.embedOrigins).toBe(kept);
  const none = await project('update', json.projectId, '--no-embed-origins', '--json');
  expect(none.json).toMatchObject({ embedOrigins: null, changed: { embedOrigins: { from: kept, to: null } } });
});

test.each([
  ['https://*.shop.example', 'without "*"'],
  ['*', 'without "*"'],
  ["'self'", 'without "*"'],
  ['https:', 'without "*"'],
  ['https://shop.example/pay', 'scheme, host and port'],
  ['https://a:b@shop.example', 'a user name'],
  ['https://[::1]', 'IPv6'],
  ['https://shop.example;script-src', 'without "*"'],
  ['data:text/html,x', 'without "*"'],
  ['http://shop.example', 'use https://'],
  [' , ', 'has 0 sites'],
  ['https://a.example '.repeat(6), 'has 6 sites'],
  [
    Array.from({ length: 5 }, (_, i) => `https://${`${i}${'a'.repeat(60)}.`.repeat(4)}example`).join(' '),
    'at most 1000',
  ],
])('a site that a header would not name as it is meant is refused: %s', async (given, reason) => {
  const wanted = ['create', '--name', 'Shop', '--network', 'nile', '--embed-origins', given, '--json'];
  const { code, json } = await project(...wanted);
  expect(code).toBe(2);
  expect(json.error.errors).toEqual([{ subject: '--embed-origins', message: expect.stringContaining(reason) }]);
});

test.each([
  ['--return-url', 'http://localhost:3000/done', 'returnUrl'],
  ['--embed-origins', 'http://localhost:3000', 'embedOrigins'],
])('%s to this machine is for test network projects', async (option, link, field) => {
  const local = [option, link, '--json'];
  const [live, nile] = await Promise.all(
    ['mainnet', 'nile'].map((network) => project('create', '--name', 'Shop', '--network', network, '--json')),
  );
  const refused = [
    await project('create', '--name', 'Shop', '--network', 'mainnet', ...local),
    await project('update', live?.json.projectId, ...local),
  ];
  for (const { code, json } of refused) {
    expect(code).toBe(2);
    expect(json.error.errors).toEqual([
      { subject: option, message: expect.stringContaining('works only on this machine') },
    ]);
  }
  expect((await project('update', nile?.json.projectId, ...local)).json[field]).toBe(link);
});

test('a logo that is no file of at most 32 KiB is refused without being waited for', async () => {
  const directory = newDirectory();
  mkdirSync(join(directory, 'folder'));
  execFileSync('/bin/sh', ['-c', 'mkfifo "$0"', join(directory, 'pipe')]);
  const large = newFile(Buffer.concat([LOGOS.jpeg, Buffer.alloc(32 * 1024)]));
  const logo = async (path: string) => {
    const { json } = await project('create', '--name', 'Shop', '--network', 'nile', '--logo', path, '--json');
    return json.error.errors[0].message;
  };
  expect(await logo(join(directory, 'folder'))).toContain('is not a file: use the path');
  expect(await logo(join(directory, 'pipe'))).toContain('is not a file: use the path');
  expect(await logo(join(directory, 'nothing'))).toContain('does not exist: use the path');
  expect(await logo(large)).toContain('is larger than 32 KiB: scale it down');
});

test('a secret that was pasted for a contact or a link is not repeated', async () => {
  const secret = `whsec_${'a1b2'.repeat(8)}`;
  const args = ['--support', `call ${secret}`, '--return-url', `https://shop.example/?${secret}`, '--accent', secret];
  const { code, stderr } = await project('create', '--name', 'Shop', '--network', 'nile', ...args);
  expect(code).toBe(2);
  for (const option of ['--support: this looks like', '--return-url: this looks like', '--accent is (']) {
    expect(stderr).toContain(option);
  }
  expect(stderr).not.toContain(secret);
});
