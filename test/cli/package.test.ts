import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { formatManifest } from '../../src/core/domain/manifest/manifest.ts';
import { VECTOR } from '../manifest/vector.ts';
import { copyCheckout, linkProductionPackages, newFolder, productionPackages } from '../support/checkout-copy.ts';
import { deadLinks } from '../support/document-links.ts';
import { longTest } from '../support/some-cases.ts';
import { runProcess } from './run-cli.ts';

const run = promisify(execFile);

longTest(
  'the package holds a build of the sources as they were when it was packed, and runs with what it depends on',
  async () => {
    const checkout = await copyCheckout(['src', 'packages', 'docs', 'deploy', 'compose.yaml']);
    await run('npm', ['run', '--silent', 'build'], { cwd: checkout });
    const source = join(checkout, 'src/core/runtime/package.ts');
    await writeFile(source, (await readFile(source, 'utf8')).replace('String(version)', "'newest'"));
    const folder = await newFolder();
    await run('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: checkout });
    const [archive = ''] = await readdir(folder);
    await run('tar', ['-xzf', archive], { cwd: folder });
    const modules = join(folder, 'node_modules');
    await mkdir(modules);
    await rename(join(folder, 'package'), join(modules, 'quittance'));
    await linkProductionPackages(modules);

    const names = await readdir(join(modules, 'quittance'), { recursive: true });
    expect(names.filter((name) => /^(src|build|test)\b|\.ts$|\.test\.js|\.draft$|built-from/.test(name))).toEqual([]);
    const pages = names.filter((name) => name.endsWith('.md'));
    expect(pages).toContain('docs/decisions/0001-one-invoice-row.md');
    expect(pages.flatMap((page) => deadLinks(join(modules, 'quittance'), page))).toEqual([]);
    const command = join(modules, 'quittance/bin/quittance.js');
    expect(await runProcess(['--version'], { command })).toMatchObject({ code: 0, stdout: 'newest\n', stderr: '' });
    const { code, stdout } = await runProcess(['chain', '--help'], { command });
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('checkpoint') });

    // Signs addresses with the package, and with the single file in it, on a machine without database or settings.
    const draft = join(folder, 'draft');
    const manifest = { ...VECTOR, notAfter: '2099-01-01T00:00:00.000Z' };
    await writeFile(draft, formatManifest({ manifest, signatures: [] }));
    await writeFile(join(folder, 'passphrase'), 'correct horse battery');
    const secret = ['--passphrase-file', join(folder, 'passphrase')];
    const key = join(folder, 'key');
    const alone = async (program: string, ...args: string[]) =>
      JSON.parse((await run(process.execPath, [program, ...args, '--json'], { cwd: folder, env: {} })).stdout);
    const { publicKey } = await alone(command, 'manifest', 'key', key, ...secret);
    const signing = [draft, '--key', key, ...secret, '--yes', '--output'];
    const byPackage = join(folder, 'signed-by-the-package');
    expect(await alone(command, 'manifest', 'sign', ...signing, byPackage)).toMatchObject({ signers: [publicKey] });
    const signer = join(modules, 'quittance/dist/manifest-sign.mjs');
    const byFile = join(folder, 'signed-by-the-file');
    expect(await alone(signer, 'sign', ...signing, byFile)).toMatchObject({ signers: [publicKey] });
    expect(await readFile(byFile)).toEqual(await readFile(byPackage));

    const { wordsOf } = await import(join(modules, 'quittance/dist/faces/checkout/words/words.js'));
    expect(wordsOf('fr').text('paid')).toBe('Payé');

    // The command that the sandbox prints exists: an installed package has no npm scripts of ours.
    const sandbox = { baseUrl: 'http://127.0.0.1:8080', apiKey: 'qt_test_1', inboxUrl: 'http://127.0.0.1:8081/' };
    const { quickStart: ofPackage } = await import(join(modules, 'quittance/dist/developer/sandbox/run-sandbox.js'));
    expect(ofPackage(sandbox, 'order-1')).toContain('   npx --no quittance sandbox pay order-1\n');
  },
);

test('none of the packages that it depends on compiles', async () => {
  const packages = await productionPackages();
  expect(packages).toContain('fastify');
  const compilers = /^(tsx|esbuild|@esbuild\/.*|typescript|ts-blank-space|ts-node|@swc\/.*|sucrase|@babel\/.*|amaro)$/;
  expect(packages.filter((name) => compilers.test(name))).toEqual([]);
});
