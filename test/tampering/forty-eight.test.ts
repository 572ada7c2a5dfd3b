import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { FORTY_EIGHT } from './forty-eight.ts';

/** `| 3 | an address into the pool | found | found | … |` */
const LINE =
  /^\| (\d+) \| ([^|]+) \| (prevented|harmless|found|silent) \| (prevented|harmless|found|silent) \| [^|]+ \|$/gm;

test('each of the 48 is tried with both rights, and none of them works silently', () => {
  expect(FORTY_EIGHT.map(([number]) => number)).toEqual(Array.from({ length: 48 }, (_, index) => index + 1));
  const outcomes = FORTY_EIGHT.flatMap(([, , , plain, owner]) => [plain, owner]);
  expect(outcomes).toHaveLength(96);
  expect(outcomes.filter((outcome) => outcome === 'silent')).toHaveLength(0);
});

test('docs/explained/security.md says of each what the tests find', async () => {
  const page = await readFile(new URL('../../docs/explained/security.md', import.meta.url), 'utf8');
  const told = [...page.matchAll(LINE)].map(([, number, what, plain, owner]) => [Number(number), what, plain, owner]);
  expect(told).toEqual(FORTY_EIGHT.map(([number, , what, plain, owner]) => [number, what, plain, owner]));
});
