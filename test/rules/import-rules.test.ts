import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';

/** One planted violation for each rule: the offending file and its import. */
const PLANTED: Record<string, { file: string; imports: string }> = {
  'tron-imports': { file: 'src/tron/bad.ts', imports: '../domain/clean.ts' },
  'domain-imports': { file: 'src/domain/bad.ts', imports: '../store/clean.ts' },
  'store-imports': { file: 'src/store/bad.ts', imports: '../payments/clean.ts' },
  'payments-imports': { file: 'src/payments/bad.ts', imports: '../chain/clean.ts' },
  'chain-imports': { file: 'src/chain/bad.ts', imports: '../webhooks/clean.ts' },
  'webhooks-imports': { file: 'src/webhooks/bad.ts', imports: '../tron/clean.ts' },
  'notify-imports': { file: 'src/notify/bad.ts', imports: '../tron/clean.ts' },
  'operator-imports': { file: 'src/operator/bad.ts', imports: '../web/clean.ts' },
  'web-imports': { file: 'src/web/bad.ts', imports: '../store/clean.ts' },
  'api-imports': { file: 'src/api/bad.ts', imports: '../chain/clean.ts' },
  'checkout-imports': { file: 'src/checkout/bad.ts', imports: '../api/clean.ts' },
  'adapters-imports': { file: 'src/adapters/bad.ts', imports: '../chain/clean.ts' },
  'admin-imports': { file: 'src/admin/bad.ts', imports: '../store/clean.ts' },
  'console-imports': { file: 'src/console/bad.ts', imports: '../cli/clean.ts' },
  'developer-imports': { file: 'src/developer/bad.ts', imports: '../cli/clean.ts' },
  'devnet-imports': { file: 'src/devnet/bad.ts', imports: '../domain/clean.ts' },
  'runtime-imports': { file: 'src/runtime/bad.ts', imports: '../domain/clean.ts' },
  'no-cycles': { file: 'src/store/loop-back.ts', imports: './loop.ts' },
  'pure-core-has-no-node': { file: 'src/domain/impure.ts', imports: 'node:fs' },
  'pure-core-packages': { file: 'src/domain/heavy.ts', imports: 'pg' },
  'pure-core-has-no-runtime': { file: 'src/tron/clocked.ts', imports: '../runtime/clean.ts' },
  'cli-is-a-face': { file: 'src/cli/key/bad.ts', imports: '../../store/clean.ts' },
  'commands-are-apart': { file: 'src/cli/events/bad.ts', imports: '../key/clean.ts' },
  'service-runs-without-commands': { file: 'src/service.ts', imports: './service/far.ts' },
  'only-commands-import-developer': { file: 'src/cli/key/listening.ts', imports: '../../developer/clean.ts' },
  'only-developer-imports-devnet': { file: 'src/cli/key/paying.ts', imports: '../../devnet/clean.ts' },
  'only-store-speaks-sql': { file: 'src/payments/query.ts', imports: 'pg' },
  'sdk-imports-nothing': { file: 'sdk/src/bad.ts', imports: '../../src/domain/clean.ts' },
  'only-tests-import-sdk': { file: 'src/cli/client.ts', imports: '../../sdk/src/clean.ts' },
  'source-imports-no-tests': { file: 'src/cli/tested.ts', imports: '../../test/clean.ts' },
  'not-to-unresolvable': { file: 'src/cli/lost.ts', imports: './nowhere.ts' },
  'no-dev-dependencies-in-source': { file: 'src/cli/dev.ts', imports: 'vitest' },
};

const root = resolve(import.meta.dirname, '../..');
let folder: string;
let violations: { rule: { name: string }; from: string }[];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'quittance-rules-'));
  const plant = async (file: string, text: string) => {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), text);
  };
  for (const { file, imports } of Object.values(PLANTED)) await plant(file, `import '${imports}';\n`);
  await plant('src/store/loop.ts', "import './loop-back.ts';\n");
  await plant('src/service/far.ts', "import '../cli/clean.ts';\n");
  const pure = ['tron', 'domain', 'runtime'];
  const below = ['store', 'payments', 'chain', 'webhooks', 'web', 'api'];
  const folders = [...pure, ...below, 'devnet', 'developer', 'cli', 'cli/key'];
  for (const name of folders) await plant(`src/${name}/clean.ts`, 'export {};\n');
  await plant('test/clean.ts', 'export {};\n');
  await plant('sdk/src/clean.ts', 'export {};\n');
  await plant(
    'tsconfig.json',
    '{"compilerOptions":{"module":"NodeNext","allowImportingTsExtensions":true,"noEmit":true}}\n',
  );
  await plant('package.json', '{"type":"module","dependencies":{"pg":"*"},"devDependencies":{"vitest":"*"}}\n');
  for (const name of ['pg', 'vitest']) {
    await plant(`node_modules/${name}/package.json`, `{"name":"${name}","main":"index.js"}\n`);
    await plant(`node_modules/${name}/index.js`, 'module.exports = {};\n');
  }
  const command = join(root, 'test/node_modules/dependency-cruiser/bin/dependency-cruise.mjs');
  const config = join(root, '.dependency-cruiser.cjs');
  const args = [command, '--config', config, '--output-type', 'json', 'src', 'sdk'];
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    cwd: folder,
    maxBuffer: 16 * 1024 * 1024,
  }).catch(
    // The exit code is the number of violations.
    (error: { stdout: string }) => error,
  );
  violations = JSON.parse(stdout).summary.violations;
});

afterAll(() => rm(folder, { recursive: true, force: true }));

test.each(Object.entries(PLANTED))('the rule %s reports a planted violation', (rule, { file }) => {
  const reported = violations.filter(({ from }) => from === file).map((violation) => violation.rule.name);
  expect(reported).toContain(rule);
});

test('every rule of the configuration has a planted violation', () => {
  const config = createRequire(import.meta.url)('../../.dependency-cruiser.cjs');
  expect(Object.keys(PLANTED).sort()).toEqual(config.forbidden.map(({ name }: { name: string }) => name).sort());
});

test('files that obey the rules are not reported', () => {
  expect(violations.filter(({ from }) => from.endsWith('clean.ts'))).toEqual([]);
});
