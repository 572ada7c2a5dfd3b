import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestService, type TestService } from '../support/service.ts';

const PROGRAMS = join(import.meta.dirname, 'programs');
/** The one holds its Java program; the machine needs `java`. */
const GENERATORS = ['openapi-generator-cli==7.26.0', 'openapi-python-client==0.29.1'];

let folder: string;
let service: TestService;
beforeAll(async () => {
  service = await startTestService();
  folder = await mkdtemp(join(tmpdir(), 'clients-'));
  await run('python3', ['-m', 'venv', 'tools']);
  await run(tool('pip'), ['install', '--quiet', ...GENERATORS]);
  await writeFile(join(folder, 'openapi.json'), await (await fetch(`${service.url}/openapi.json`)).text());
});
afterAll(async () => {
  await service.stop();
  // Go's cache of modules is not writable.
  await run('chmod', ['-R', 'u+w', folder], tmpdir());
  await rm(folder, { recursive: true, force: true });
});

const tool = (name: string) => join(folder, 'tools/bin', name);

async function run(command: string, parameters: string[], cwd = folder): Promise<string> {
  const env = { ...process.env, HOME: folder, GOPATH: join(folder, 'gopath'), GOFLAGS: '-mod=mod' };
  const { stdout } = await promisify(execFile)(command, parameters, { cwd, env, maxBuffer: 64 * 1024 * 1024 });
  return stdout;
}

const generate = (generator: string, ...more: string[]) =>
  run(tool('openapi-generator-cli'), ['generate', '-i', 'openapi.json', '-g', generator, '-o', generator, ...more]);

/** Each program prints the id of what it created, its status as it read it, and the code or status of a refusal. */
const ANSWER = /^inv_[0-9a-z]{26} PENDING (INVOICE_NOT_FOUND|404)\s*$/;

async function judge(command: string, parameters: string[], cwd: string): Promise<void> {
  expect(await run(command, [...parameters, service.url, service.project.apiKey], cwd)).toMatch(ANSWER);
}

test('Go', async () => {
  await generate('go', '--additional-properties=packageName=quittance', '--git-user-id=example', '--git-repo-id=api');
  await run('mkdir', ['go/run']);
  await copyFile(join(PROGRAMS, 'main.go'), join(folder, 'go/run/main.go'));
  await run('go', ['build', './...'], join(folder, 'go'));
  await judge('go', ['run', './run'], join(folder, 'go'));
});

test('TypeScript (fetch)', async () => {
  const generator = 'typescript-fetch';
  await generate(generator);
  await copyFile(join(PROGRAMS, 'main.ts.txt'), join(folder, generator, 'main.ts'));
  const bin = (name: string) => join(import.meta.dirname, '../..', name);
  const options = '--noEmit --strict --skipLibCheck --target es2022 --module esnext --moduleResolution bundler';
  const types = ['--lib', 'es2022,dom', '--types', 'node', '--typeRoots', bin('node_modules/@types')];
  await run(bin('node_modules/.bin/tsc'), [...options.split(' '), ...types, 'main.ts'], join(folder, generator));
  const bundle = ['main.ts', '--bundle', '--format=esm', '--platform=node', '--outfile=main.mjs', '--log-level=error'];
  await run(bin('test/node_modules/.bin/esbuild'), bundle, join(folder, generator));
  await judge(process.execPath, ['main.mjs'], join(folder, generator));
});

test('Python (openapi-python-client)', async () => {
  const parameters = ['generate', '--path', 'openapi.json', '--meta', 'none', '--output-path', 'quittance_api'];
  const said = await run(tool('openapi-python-client'), parameters);
  // Of the answers that a client parses none is left out.
  expect(said).not.toMatch(/WARNING|Cannot parse|Skipping response/i);
  await judge(tool('python'), [join(PROGRAMS, 'main.py'), folder], folder);
});

test('Java', async () => {
  await generate('java');
  await run('mvn', ['--quiet', '-DskipTests', '-Dmaven.javadoc.skip', 'compile'], join(folder, 'java'));
});

/** What Debian's compiler reads. */
const OF_CSHARP_7 =
  '--additional-properties=targetFramework=netstandard2.0,nullableReferenceTypes=false,library=httpclient';

test.each([
  { generator: 'php', command: ['php', '-l'], files: 'lib/*.php' },
  { generator: 'ruby', command: ['ruby', '-c'], files: 'lib/*.rb' },
  {
    generator: 'csharp',
    command: ['mcs', '-langversion:latest', '--parse'],
    files: 'src/Org.OpenAPITools/*.cs',
    more: [OF_CSHARP_7],
  },
])('$generator: what is generated is of the language', async ({ generator, command, files: pattern, more = [] }) => {
  await generate(generator, ...more);
  const files = (await run('find', [generator, '-path', `${generator}/${pattern}`])).trim().split('\n');
  expect(files.length).toBeGreaterThan(20);
  const [program = '', ...parameters] = command;
  for (const file of files) await run(program, [...parameters, file]);
});
