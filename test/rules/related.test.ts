import { join } from 'node:path';
import { expect, test } from 'vitest';
import { relatedTests } from './related.ts';

const ROOT = join(import.meta.dirname, '../..');

test.each([
  ['src/core/domain/money.ts', 'src/core/domain/money.test.ts'],
  ['src/faces/operator/subjects/requests.ts', 'test/requests/log.test.ts'],
  ['docs/guides/listen.md', 'test/flows/sandbox-scenarios.test.ts'],
  ['migrations/0030_untold_transfers.sql', 'test/cli/database.test.ts'],
  ['public/checkout.js', 'src/faces/web/minify.test.ts'],
])('a change of %s is watched by %s, and by the rules', (changed, watching) => {
  const related = relatedTests(ROOT, [changed]);
  expect(related).toContain(watching);
  expect(related).toContain('test/rules/import-rules.test.ts');
});

test('a changed test watches itself, and one that is gone is not run', () => {
  const changed = ['src/core/domain/money.test.ts', 'src/core/domain/gone.test.ts'];
  const unit = relatedTests(ROOT, changed).filter((path) => path.startsWith('src/'));
  expect(unit).toEqual(['src/core/domain/money.test.ts']);
});
