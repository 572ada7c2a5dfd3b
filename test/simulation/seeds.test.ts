import { writeFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { keepSeed, readSeeds } from './seeds.ts';
import { parsePlan } from './world/plan.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'seeds-'));
});
afterEach(() => rm(directory, { recursive: true }));

test('a plan that failed is replayed from then on, and stands in the file once', async () => {
  const path = join(directory, 'seeds.txt');
  const file = pathToFileURL(path);
  writeFileSync(file, '# An old one.\n1 60\n');
  const plan = parsePlan('7 15 crash,clock');
  keepSeed(plan, ['minute 3: invariant 1 (one invoice):\nit was two', 'another'], file);
  keepSeed(plan, ['minute 4: invariant 1 again'], file);
  expect(readSeeds(file)).toEqual([parsePlan('1 60'), plan]);
  expect(await readFile(path, 'utf8')).toBe(
    '# An old one.\n1 60\n# Broke: minute 3: invariant 1 (one invoice): it was two\n7 15 crash,clock\n',
  );
});
