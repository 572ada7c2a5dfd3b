import { execFile, spawnSync } from 'node:child_process';
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BothServers, startBothServers } from './both-servers.ts';

const PROGRAMS = join(import.meta.dirname, 'programs');
/** The first package contains a Java program, so the machine needs `java`. */
const GENERATORS = ['openapi-generator-cli==7.26.0', 'openapi-python-client==0.29.1'];

let folder: string;
let servers: BothServers;
beforeAll(async () => {
  servers = await startBothServers();
  folder = await mkdtemp(join(tmpdir(), 'clients-'));
  await run('python3', ['-m', 'venv', 'tools']);
  await run(tool('pip'), ['install', '--quiet', ...GENERATORS]);
  await writeFile(join(folder, 'openapi.json'), await (await fetch(`${servers.service.url}/openapi.json`)).text());
});
afterAll(async () => {
  await servers.stop();
  // Go's module cache is read-only.
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

const judge = (command: string, parameters: string[], cwd: string) =>
  servers.judge((url, apiKey) => run(command, [...parameters, url, apiKey], cwd));

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
  // No response is missing from a client that parses responses.
  expect(said).not.toMatch(/WARNING|Cannot parse|Skipping response/i);
  await judge(tool('python'), [join(PROGRAMS, 'main.py'), folder], folder);
});

test('Python (openapi-generator)', async () => {
  await generate('python');
  await run(tool('pip'), ['install', '--quiet', './python']);
  await judge(tool('python'), [join(PROGRAMS, 'generated.py')], folder);
});

test('Java', async () => {
  await generate('java');
  await copyFile(join(PROGRAMS, 'Main.java'), join(folder, 'java/src/main/java/Main.java'));
  const goals = ['compile', 'dependency:build-classpath', '-Dmdep.outputFile=libraries', '-Dmaven.javadoc.skip'];
  await run('mvn', ['--quiet', ...goals], join(folder, 'java'));
  const libraries = await readFile(join(folder, 'java/libraries'), 'utf8');
  await judge('java', ['-cp', `target/classes:${libraries.trim()}`, 'Main'], join(folder, 'java'));
});

/** A library that only Debian has, neither PyPI nor Maven. */
const lacks = (command: string, ...parameters: string[]) => spawnSync(command, parameters).status !== 0;

test('PHP', async ({ skip }) => {
  skip(
    lacks('php', '-r', "require 'GuzzleHttp/autoload.php';"),
    'needs PHP and Guzzle: apt-get install php-guzzlehttp-guzzle',
  );
  await generate('php');
  await judge('php', [join(PROGRAMS, 'main.php'), 'php'], folder);
});

const CLIENT = join(import.meta.dirname, '../../plugins/php/Quittance.php');

test('PHP: the client of plugins/php', async ({ skip }) => {
  skip(lacks('php', '-r', "exit(extension_loaded('curl') ? 0 : 1);"), 'needs PHP with curl');
  await judge('php', [join(PROGRAMS, 'quittance.php'), CLIENT], folder);
});

test('Ruby', async ({ skip }) => {
  skip(lacks('ruby', '-e', "require 'typhoeus'"), 'needs Ruby and Typhoeus: apt-get install ruby-typhoeus');
  await generate('ruby');
  await judge('ruby', [join(PROGRAMS, 'main.rb'), 'ruby'], folder);
});

/** The language version of Debian's compiler. */
const OF_CSHARP_7 =
  '--additional-properties=targetFramework=netstandard2.0,nullableReferenceTypes=false,library=httpclient';

test('C#: what is generated is of the language', async ({ skip }) => {
  skip(lacks('mcs', '--version'), "needs Debian's mono-mcs");
  await generate('csharp', OF_CSHARP_7);
  const files = (await run('find', ['csharp/src/Org.OpenAPITools', '-name', '*.cs'])).trim().split('\n');
  expect(files.length).toBeGreaterThan(20);
  for (const file of files) await run('mcs', ['-langversion:latest', '--parse', file]);
});
