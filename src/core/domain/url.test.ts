import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { parseUrl } from './url.ts';

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
