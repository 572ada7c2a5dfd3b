import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { createContext, runInContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import { type BuildOptions, build } from 'esbuild';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { webhooks } from '../../packages/sdk/src/index.ts';
import { longTest } from '../support/some-cases.ts';
import { GENUINE, NOW_MS } from './forgeries.ts';
import { readTypes, renderTypes } from './openapi-types.ts';
import { SDK_KEY } from './sdk-key.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const SDK = join(ROOT, 'packages/sdk');
const MAX_GZIP_BYTES = 6 * 1024;

async function bundle(options: BuildOptions): Promise<string> {
  const entryPoints = [join(SDK, 'src/index.ts')];
  const built = await build({
    entryPoints,
    bundle: true,
    write: false,
    target: 'es2022',
    logLevel: 'silent',
    ...options,
  });
  expect(built.warnings).toEqual([]);
  return built.outputFiles?.[0]?.text ?? '';
}

test('the types are those of the API as it is now; else run: npm run sdk:types', async () => {
  expect(await readTypes()).toBe(await renderTypes());
});

test('all of the main entry is at most 6 KB, minified and compressed', async () => {
  const code = await bundle({ format: 'esm', minify: true, platform: 'neutral' });
  const size = gzipSync(code, { level: 9 }).length;
  console.info(`@quittance/sdk: ${code.length} bytes minified, ${size} bytes gzip`);
  expect(size).toBeLessThanOrEqual(MAX_GZIP_BYTES);
});

test('it runs where there are Web APIs only, as in a worker', async () => {
  const code = await bundle({ format: 'iife', globalName: 'sdk', platform: 'browser', minify: true });
  const invoice = { invoiceId: 'inv_1', externalId: 'order-1', status: 'PAID' };
  const web = {
    AbortController,
    atob,
    btoa,
    clearTimeout,
    crypto,
    setTimeout,
    TextDecoder,
    TextEncoder,
    URL,
    URLSearchParams,
  };
  const world = createContext({
    ...web,
    fetch: async () => Response.json(invoice),
    genuine: GENUINE,
    now: () => NOW_MS,
  });
  runInContext(code, world);
  const run = (expression: string) => runInContext(`(async () => ${expression})()`, world);
  const verify = (body: string) => run(`sdk.webhooks.verify(${body}, genuine.headers, genuine.secret, { now })`);
  await expect(verify('genuine.body')).resolves.toMatchObject({ type: 'invoice.paid' });
  await expect(verify('new Uint8Array(3)')).rejects.toMatchObject({ code: 'SIGNATURE_MISMATCH' });
  const client = `new sdk.Quittance({ apiKey: '${SDK_KEY}', baseUrl: 'https://pay.example.com' })`;
  await expect(run(`${client}.invoices.get('inv_1')`)).resolves.toEqual(invoice);
});

test('it verifies on Node 18, which has no global crypto', async () => {
  vi.stubGlobal('crypto', undefined);
  try {
    const { body, headers, secret } = GENUINE;
    const event = await webhooks.verify(body as Buffer, headers, secret, { now: () => NOW_MS });
    expect(event.type).toBe('invoice.paid');
  } finally {
    vi.unstubAllGlobals();
  }
});

type Entry = Record<'import' | 'require', { types: string; default: string }>;

describe('the package as it is built', () => {
  let folder: string;
  const require = createRequire(import.meta.url);
  /** From the imported name to the file with its types. */
  const types = new Map<string, string>();

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'quittance-sdk-'));
    await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  longTest(
    'compiles without the types of Node.js, depends on nothing, and every entry can be imported and required',
    async () => {
      await promisify(execFile)(process.execPath, [join(ROOT, 'build/package.js'), 'sdk', join(folder, 'dist')]);
      const manifest = JSON.parse(await readFile(join(SDK, 'package.json'), 'utf8'));
      const { exports, dependencies, main } = manifest;
      expect(dependencies).toBeUndefined();
      for (const [name, entry] of Object.entries<Entry>(exports)) {
        if (name === './package.json') continue;
        types.set(name.replace('.', '@quittance/sdk'), join(folder, entry.import.types));
        const names = Object.keys(await import(join(folder, entry.import.default)));
        expect(names).not.toEqual([]);
        expect(Object.keys(require(join(folder, entry.require.default)))).toEqual(expect.arrayContaining(names));
        expect([existsSync(join(folder, entry.require.types)), existsSync(join(folder, entry.import.types))]).toEqual([
          true,
          true,
        ]);
      }
      expect(exports['.'].require.default).toBe(main);
    },
  );

  longTest('is what every example of the documentation compiles with', async () => {
    const pages = ['docs/reference/sdk.md', 'docs/guides/verify-address.md'].map((page) =>
      readFile(join(ROOT, page), 'utf8'),
    );
    const text = (await Promise.all(pages)).join('\n');
    const examples = [...text.matchAll(/^```ts\n(.*?)^```/gms)].map(([, code = '']) => code);
    expect(examples.length).toBeGreaterThan(8);
    const files = new Map(examples.map((code, index) => [join(ROOT, `test/sdk/example-${index}.ts`), code]));
    const paths = Object.fromEntries([...types].map(([name, file]) => [name, [file]]));
    const options = { ...parseConfig(ROOT).options, paths };
    const host = ts.createCompilerHost(options);
    const { fileExists, readFile: readSource } = host;
    host.fileExists = (name) => files.has(name) || fileExists(name);
    host.readFile = (name) => files.get(name) ?? readSource(name);
    expect(problemsOf(ts.createProgram([...files.keys()], options, host))).toEqual([]);
  });
});

function parseConfig(folder: string): ts.ParsedCommandLine {
  const host = { ...ts.sys, onUnRecoverableConfigFileDiagnostic: () => undefined };
  const parsed = ts.getParsedCommandLineOfConfigFile(join(folder, 'tsconfig.json'), {}, host);
  if (parsed === undefined) throw new Error(`${folder} has no tsconfig.json`);
  return parsed;
}

function problemsOf(program: ts.Program): string[] {
  return ts.getPreEmitDiagnostics(program).map(({ file, messageText }) => {
    return `${file?.fileName ?? ''}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`;
  });
}
