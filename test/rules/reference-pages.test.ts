import { join } from 'node:path';
import { expect, test } from 'vitest';
import { VARIABLES } from '../../src/server/config/settings.ts';
import { GENERATED, referencePages } from './reference-pages.ts';
import { VARIABLE_TEXTS } from './variable-texts.ts';

const DOCS = join(import.meta.dirname, '../../docs');

// `npm run docs:record` regenerates the pages.
test('the generated pages of docs/ are what the code says', async () => {
  const pages = Object.entries(await referencePages());
  expect(pages.map(([path]) => path)).toEqual(GENERATED);
  for (const [path, text] of pages) await expect(text).toMatchFileSnapshot(join(DOCS, path));
});

test('every variable is described once', () => {
  const described = Object.values(VARIABLE_TEXTS).flatMap((texts) => Object.keys(texts));
  expect(described.toSorted()).toEqual([...VARIABLES].toSorted());
});
