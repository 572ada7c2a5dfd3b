import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';

/** One planted violation for each rule: the offending file and its import. */
const PLANTED: Record<string, { file: string; imports: string }> = {
  'packages-tron-imports': { file: 'packages/tron/src/bad.ts', imports: '../../devnet/src/clean.ts' },
  'packages-devnet-imports': { file: 'packages/devnet/src/bad.ts', imports: '../../../src/core/domain/clean.ts' },
  'core-runtime-imports': { file: 'src/core/runtime/bad.ts', imports: '../domain/clean.ts' },
  'core-domain-imports': { file: 'src/core/domain/bad.ts', imports: '../store/clean.ts' },
  'core-store-imports': { file: 'src/core/store/bad.ts', imports: '../payments/clean.ts' },
  'core-payments-imports': { file: 'src/core/payments/bad.ts', imports: '../chain/clean.ts' },
  'core-chain-imports': { file: 'src/core/chain/bad.ts', imports: '../webhooks/clean.ts' },
  'core-webhooks-imports': { file: 'src/core/webhooks/bad.ts', imports: '@quittance/tron/clean' },
  'faces-web-imports': { file: 'src/faces/web/bad.ts', imports: '../../core/store/clean.ts' },
  'faces-notify-imports': { file: 'src/faces/notify/bad.ts', imports: '@quittance/tron/clean' },
  'faces-operator-imports': { file: 'src/faces/operator/bad.ts', imports: '../web/clean.ts' },
  'faces-api-imports': { file: 'src/faces/api/bad.ts', imports: '../../core/chain/clean.ts' },
  'faces-checkout-imports': { file: 'src/faces/checkout/bad.ts', imports: '../api/clean.ts' },
  'faces-adapters-imports': { file: 'src/faces/adapters/bad.ts', imports: '../../core/chain/clean.ts' },
  'faces-admin-imports': { file: 'src/faces/admin/bad.ts', imports: '../../core/store/clean.ts' },
  'faces-console-imports': { file: 'src/faces/console/bad.ts', imports: '../api/clean.ts' },
  'server-imports': { file: 'src/server/bad.ts', imports: '../cli/clean.ts' },
  'developer-imports': { file: 'src/developer/bad.ts', imports: '../cli/clean.ts' },
  'core-imports-no-face': { file: 'src/core/payments/ask.ts', imports: '../../faces/operator/clean.ts' },
  'faces-are-composed': { file: 'src/faces/operator/composed.ts', imports: '../../server/clean.ts' },
  'no-cycles': { file: 'src/core/store/loop-back.ts', imports: './loop.ts' },
  'pure-core-has-no-node': { file: 'src/core/domain/impure.ts', imports: 'node:fs' },
  'pure-core-packages': { file: 'src/core/domain/heavy.ts', imports: 'pg' },
  'pure-core-has-no-runtime': { file: 'src/core/domain/clocked.ts', imports: '../runtime/clean.ts' },
  'cli-is-a-face': { file: 'src/cli/key/bad.ts', imports: '../../core/store/clean.ts' },
  'commands-are-apart': { file: 'src/cli/events/bad.ts', imports: '../key/clean.ts' },
  'service-runs-without-commands': { file: 'src/server/service.ts', imports: './far.ts' },
  'only-commands-import-developer': { file: 'src/cli/key/listening.ts', imports: '../../developer/clean.ts' },
  'only-developer-imports-devnet': { file: 'src/cli/key/paying.ts', imports: '@quittance/devnet/clean' },
  'only-store-speaks-sql': { file: 'src/core/payments/query.ts', imports: 'pg' },
  'sdk-imports-nothing': { file: 'packages/sdk/src/bad.ts', imports: '../../../src/core/domain/clean.ts' },
  'only-tests-import-sdk': { file: 'src/cli/client.ts', imports: '../../packages/sdk/src/clean.ts' },
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
  await plant('src/core/store/loop.ts', "import './loop-back.ts';\n");
  await plant('src/server/far.ts', "import '../cli/clean.ts';\n");
  const core = ['domain', 'runtime', 'store', 'payments', 'chain', 'webhooks'].map((name) => `core/${name}`);
  const faces = ['web', 'api', 'operator'].map((name) => `faces/${name}`);
  const folders = [...core, ...faces, 'server', 'developer', 'cli', 'cli/key'].map((name) => `src/${name}`);
  for (const name of [...folders, 'test']) await plant(`${name}/clean.ts`, 'export {};\n');
  for (const name of ['tron', 'devnet', 'sdk']) {
    await plant(`packages/${name}/src/clean.ts`, 'export {};\n');
    await plant(
      `packages/${name}/package.json`,
      JSON.stringify({ name: `@quittance/${name}`, exports: { './*': { '@quittance/source': './src/*.ts' } } }),
    );
    await mkdir(join(folder, 'node_modules/@quittance'), { recursive: true });
    await symlink(join(folder, 'packages', name), join(folder, 'node_modules/@quittance', name));
  }
  await plant(
    'tsconfig.json',
    '{"compilerOptions":{"module":"NodeNext","customConditions":["@quittance/source"],"allowImportingTsExtensions":true,"noEmit":true}}\n',
  );
  await plant('package.json', '{"type":"module","dependencies":{"pg":"*"},"devDependencies":{"vitest":"*"}}\n');
  for (const name of ['pg', 'vitest']) {
    await plant(`node_modules/${name}/package.json`, `{"name":"${name}","main":"index.js"}\n`);
    await plant(`node_modules/${name}/index.js`, 'module.exports = {};\n');
  }
  const command = join(root, 'test/node_modules/dependency-cruiser/bin/dependency-cruise.mjs');
  const config = join(root, '.dependency-cruiser.cjs');
  const args = [command, '--config', config, '--output-type', 'json', 'src', 'packages'];
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
