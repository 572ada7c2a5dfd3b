import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { isLoopback, isLoopbackLink, parseUrl } from './url.ts';

test('a URL is the same URL however often it was read', () => {
  const read = new Set(Array.from({ length: 20_000 }, () => parseUrl('https://bücher.example/ä')?.href));
  expect([...read]).toEqual(['https://xn--bcher-kva.example/%C3%A4']);
});

test.each(['', 'x', 'https://', 'https://a b', '/path'])('"%s" is no URL', (text) => {
  expect(parseUrl(text)).toBe(null);
});

test('nothing asks URL.canParse, which changes its mind', () => {
  const found = spawnSync(
    'git',
    ['grep', '-lE', String.raw`\bURL\.canParse\(`, '--', 'src', 'packages/sdk/src', 'bin'],
    {
      cwd: new URL('../../../', import.meta.url),
      encoding: 'utf8',
    },
  );
  // 1: git looked, and found nothing.
  expect(found).toMatchObject({ status: 1, stdout: '' });
});

test.each(['localhost', 'LocalHost', '127.0.0.1', '127.255.0.99', '::1', '[::1]'])('%s is this machine', (host) => {
  expect([isLoopback(host), isLoopbackLink(host)]).toEqual([true, true]);
});

test.each(['shop.localhost', 'a.b.localhost'])(
  '%s is this machine to a browser, and a name to be looked up else',
  (host) => {
    expect([isLoopback(host), isLoopbackLink(host)]).toEqual([false, true]);
  },
);

test.each([
  ...['', 'localhost.example.com', 'notlocalhost', '.localhost', '127.0.0.256', '127.1.example.com'],
  ...['127.0.0.1.', '127.0.0.1:80', '126.0.0.1', '0.0.0.0', '::', '[::1', '::2', '10.0.0.1'],
])('"%s" is not', (host) => {
  expect([isLoopback(host), isLoopbackLink(host)]).toEqual([false, false]);
});
