import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { stopOrphan } from './postmaster.ts';

/** Higher than any system's process ids. */
const NO_PROCESS = 2_147_483_646;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postmaster-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Stops the orphan of a data directory whose postmaster.pid names that socket directory. */
async function stopWith(socketDir: string): Promise<boolean> {
  const text = `${NO_PROCESS}\n${folder}\n1767225600\n5432\n${socketDir}\n\n  5432001         0\nready   \n`;
  await writeFile(join(folder, 'postmaster.pid'), text);
  return stopOrphan(folder, undefined);
}

async function makeSocketDir(name: string, ...files: string[]): Promise<string> {
  const path = join(folder, name);
  await mkdir(path);
  for (const file of files) await writeFile(join(path, file), '');
  return path;
}

test('the socket directory that postmaster.pid names is removed when nothing but the socket and its lock is there', async () => {
  const path = await makeSocketDir('quittance-a1B2c3', '.s.PGSQL.5432', '.s.PGSQL.5432.lock');
  expect(await stopWith(path)).toBe(true);
  expect(await readdir(folder)).toEqual(['postmaster.pid']);
});

test('nothing else is removed there, whatever the directory is called', async () => {
  const books = await makeSocketDir('quittance-books', 'ledger', '.s.PGSQL.5432.lock');
  await mkdir(join(books, 'deep'));
  await stopWith(books);
  expect((await readdir(books)).sort()).toEqual(['deep', 'ledger']);
  const other = await makeSocketDir('other', '.s.PGSQL.5432');
  await stopWith(other);
  expect(await readdir(other)).toEqual(['.s.PGSQL.5432']);
});

test('a link in its place is not followed', async () => {
  const target = await makeSocketDir('target', '.s.PGSQL.5432');
  const link = join(folder, 'quittance-link');
  await symlink(target, link);
  await stopWith(link);
  expect(await readdir(target)).toEqual(['.s.PGSQL.5432']);
});
