import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import ts from 'typescript';
import { afterAll, beforeAll, expect } from 'vitest';
import { longTest } from '../support/some-cases.ts';

const ROOT = join(import.meta.dirname, '../..');
const run = promisify(execFile);

let shop: string;
beforeAll(async () => {
  shop = await mkdtemp(join(tmpdir(), 'quittance-packages-'));
  for (const name of ['tron', 'devnet']) await install(name);
  await writeFile(join(shop, 'package.json'), '{"type":"module"}');
  await link('tronweb', 'test/node_modules');
}, 120_000);
afterAll(() => rm(shop, { recursive: true, force: true }));

/** Lays out the result of `npm install` for the packed package: the build and the example without sources, and its dependencies by name. */
async function install(name: string): Promise<void> {
  const [from, to] = [join(ROOT, 'packages', name), join(shop, 'node_modules/@quittance', name)];
  const { files, dependencies } = JSON.parse(await readFile(join(from, 'package.json'), 'utf8'));
  expect(files).toEqual(['dist', 'example']);
  await run(process.execPath, [join(ROOT, 'build/package.js'), name, join(to, 'dist')]);
  for (const part of ['package.json', 'example']) await cp(join(from, part), join(to, part), { recursive: true });
  for (const other of Object.keys(dependencies))
    if (!other.startsWith('@quittance/')) await link(other, 'node_modules');
}

async function link(name: string, modules: string): Promise<void> {
  const path = join(shop, 'node_modules', name);
  await mkdir(dirname(path), { recursive: true });
  await symlink(join(ROOT, modules, name), path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
}

const runExample = (path: string) => run(process.execPath, [join(shop, 'node_modules/@quittance', path)]);

longTest('the built @quittance/tron verifies a block of the main network, as its README says', async () => {
  const { stdout } = await runExample('tron/example/verify-payment.mjs');
  expect(stdout).toMatchInlineSnapshot(`
    "block 0000000004b68b6be6d7223b1ecf2850f00f700292beeead2810c18e9e1548e2: 619 transactions, all in the header
    signed by TTMNxTmRpBZnjtUnohX84j25NLkTqDga7j
    154 USDT transfers; the first is 50 USDT to TRKZWuxZ5pPBoK3ei1nQDnjAo4YyUFUMKB
      in transaction bc8c405617750cf327cc301619e91c61523aeb16436041a311430e9106859aaa
    "
  `);
});

longTest('TronWeb pays on the built @quittance/devnet, as its README says', async () => {
  const { stdout } = await runExample('devnet/example/pay.mjs');
  expect(stdout).toBe('sent 12.34 USDT: SUCCESS\nreceived: 12.34 USDT\n');
});

longTest('the types of both are found by their names, and fit together', async () => {
  const file = join(shop, 'use.ts');
  await writeFile(
    file,
    `import { createPayer, type Devnet, startDevnet } from '@quittance/devnet';
import { parseAddress, type TronAddress } from '@quittance/tron';
import { txTrieRoot } from '@quittance/tron/merkle';
const devnet: Devnet = await startDevnet({ dataDir: null });
export const payer: TronAddress = devnet.payer.address;
// @ts-expect-error No number is an address.
parseAddress(7);
export const known: [string, typeof createPayer] = [txTrieRoot([]), createPayer];
`,
  );
  const options: ts.CompilerOptions = {
    ...{ strict: true, noEmit: true, target: ts.ScriptTarget.ES2022 },
    ...{ module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext },
    ...{ types: ['node'], typeRoots: [join(ROOT, 'node_modules/@types')] },
  };
  const problems = ts.getPreEmitDiagnostics(ts.createProgram([file], options));
  expect(problems.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))).toEqual([]);
});
