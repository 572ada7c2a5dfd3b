import { execFile } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
// @ts-expect-error it has no types
import { npmCommand } from '../../build/npm.js';
import { SCOPES } from '../../src/core/domain/api-key.ts';
import { addKey } from '../contract/keys.ts';
import { type SandboxProcess, startSandboxProcess } from '../support/sandbox.ts';
import { startTestService, type TestService } from '../support/service.ts';

const SCHEMATHESIS = 'schemathesis==4.32.5';
const SPECTRAL = '@stoplight/spectral-cli@6.16.3';

let folder: string;
let service: TestService;
let sandbox: SandboxProcess;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'document-'));
  // When started by root, PostgreSQL runs as another user.
  await chmod(folder, 0o711);
  service = await startTestService({ addressCount: 20 });
  sandbox = await startSandboxProcess(join(folder, 'sandbox'));
  await run('python3', ['-m', 'venv', 'tools']);
  await run(join(folder, 'tools/bin/pip'), ['install', '--quiet', SCHEMATHESIS]);
  await writeFile(join(folder, 'package.json'), '{"private":true}');
  const [command, ...parameters] = npmCommand();
  await run(command, [...parameters, 'install', '--silent', '--ignore-scripts', SPECTRAL]);
});
afterAll(async () => {
  await sandbox?.end('SIGINT');
  await service?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Returns the output, also of a program that fails. */
async function run(command: string, parameters: readonly string[]): Promise<{ code: number; output: string }> {
  const options = { cwd: folder, env: { ...process.env, COLUMNS: '200' }, maxBuffer: 64 * 1024 * 1024 };
  return promisify(execFile)(command, [...parameters], options).then(
    ({ stdout, stderr }) => ({ code: 0, output: stdout + stderr }),
    ({ code, stdout, stderr }) => ({ code, output: stdout + stderr }),
  );
}

/** Sends generated requests, valid and invalid, and judges each answer by the document. */
const judge = (url: string, apiKey: string, ...operations: string[]) =>
  run(join(folder, 'tools/bin/st'), [
    ...['--config-file', join(import.meta.dirname, 'schemathesis.toml')],
    ...['run', `${url}/openapi.json`, '--header', `X-Api-Key: ${apiKey}`, ...operations],
  ]);

test('Schemathesis finds no answer that the document does not describe', async () => {
  const { apiKey } = await addKey(service.db, service.project.id, { scopes: SCOPES });
  const judged = await judge(service.url, apiKey);
  expect(judged.code, judged.output).toBe(0);
});

test('Schemathesis finds none in the operations of a sandbox', async () => {
  const { baseUrl, apiKey } = sandbox.file;
  const judged = await judge(baseUrl, apiKey, '--include-path-regex', '^/sandbox/');
  expect(judged.code, judged.output).toBe(0);
});

test('Spectral finds no error and no warning in the document', async () => {
  const document = await fetch(`${sandbox.file.baseUrl}/openapi.json`);
  await writeFile(join(folder, 'openapi.json'), await document.text());
  const ruleset = join(import.meta.dirname, 'spectral.yaml');
  const parameters = ['lint', 'openapi.json', '--ruleset', ruleset, '--fail-severity', 'hint'];
  const linted = await run(join(folder, 'node_modules/.bin/spectral'), parameters);
  expect(linted.code, linted.output).toBe(0);
});
