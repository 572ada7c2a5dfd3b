import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { NOT_BY_COMMAND, NOT_IN_CONSOLE } from '../../../../test/support/page-or-command.ts';
import { ACTIONS } from '../actions.ts';
import type { Operation } from '../operation.ts';
import { JOB_ACTIONS } from '../subjects/jobs.ts';

const OPERATOR = join(import.meta.dirname, '..');
const SOURCE = join(OPERATOR, '../..');

/** Returns all program text in a folder of `src/`. */
function textOf(folder: string): string {
  const root = join(SOURCE, folder);
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    (path) => path.endsWith('.ts') && !path.endsWith('.test.ts'),
  );
  return files.map((path) => readFileSync(join(root, path), 'utf8')).join('\n');
}

/** Returns the use cases that an interface calls, by name or through operations that it imports. */
async function usedBy(folder: string): Promise<Set<string>> {
  // Checking a permission isn't a way to perform the action.
  const text = textOf(folder).replace(/isAllowed\([^)]*\)/g, '');
  const used = new Set(Object.keys(ACTIONS).filter((name) => new RegExp(`\\b${name}\\b`).test(text)));
  const load = async (path: string) =>
    (await import(join(OPERATOR, `${path}.ts`))) as Record<string, Partial<Operation>>;
  for (const [, names = '', path = ''] of text.matchAll(
    /import \{([^}]+)\} from '[./]+(?:faces\/)?operator\/([a-z-]+\/(?:operations|explain)|subjects\/[a-z-]+)\.ts'/g,
  )) {
    const operations = await load(path);
    for (const name of names.split(',')) {
      const { action } = operations[name.trim().split(' as ')[0] ?? ''] ?? {};
      if (action !== undefined) used.add(action);
    }
  }
  // The commands of a subject are derived from its operations.
  for (const [, path = ''] of text.matchAll(
    /import\('[./]+(?:faces\/)?operator\/((?:subjects|explain)\/[a-z-]+)\.ts'\)/g,
  )) {
    const { operations } = (await load(path)) as unknown as { operations: readonly Operation[] };
    for (const { action, command } of operations) if (command !== undefined) used.add(action);
  }
  for (const action of folder === 'faces/console' ? Object.values(JOB_ACTIONS) : []) used.add(action);
  return used;
}

test.each([
  ['faces/console', NOT_IN_CONSOLE],
  ['cli', NOT_BY_COMMAND],
] as const)('%s: every use case can be reached, or a list says why not', async (folder, told) => {
  const used = await usedBy(folder);
  const missing = Object.keys(ACTIONS).filter((name) => !used.has(name));
  expect(missing.toSorted()).toEqual(Object.keys(told).toSorted());
});
