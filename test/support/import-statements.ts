import { readdir, readFile } from 'node:fs/promises';

const SOURCE = new URL('../../src/', import.meta.url);

/** Imports every file that declares a statement, so that all of them are known by name. */
export async function importStatements(): Promise<void> {
  for (const name of await readdir(SOURCE, { recursive: true })) {
    if (!name.endsWith('.ts') || name.endsWith('.test.ts')) continue;
    const file = new URL(name, SOURCE);
    if (/\b(?:statement|rowsOf|rowOf|answerOf|commandOf)\(/.test(await readFile(file, 'utf8'))) await import(file.href);
  }
}
