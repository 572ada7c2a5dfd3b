import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readAddressList } from './run-operation.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'addresses-'));
});
afterAll(() => rm(folder, { recursive: true }));

async function fileOf(name: string, content: string): Promise<string> {
  await writeFile(join(folder, name), content);
  return join(folder, name);
}

const nothing = Readable.from([]);

test.each([
  ['empty.txt', ''],
  ['comments.txt', '# none yet\n\n# really\n'],
  ['heading.csv', 'address,label\n'],
])('a file without an address is named: %s', async (name, content) => {
  const file = await fileOf(name, content);
  await expect(readAddressList([], file, nothing)).rejects.toThrow(`${JSON.stringify(file)}: no address found`);
});

test('standard input without an address is named, and so is the file beside it', async () => {
  await expect(readAddressList(['-'], undefined, nothing)).rejects.toThrow('standard input: no address found');
  const file = await fileOf('nothing.txt', '');
  const both = readAddressList(['-'], file, Readable.from(['\n']));
  await expect(both).rejects.toThrow(`standard input and ${JSON.stringify(file)}: no address found`);
});

test('without any source, the ways to give addresses are named', async () => {
  await expect(readAddressList([], undefined, nothing)).rejects.toThrow(
    'pass an address as an argument, or use --file or "-" (standard input)',
  );
});
