import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { SOURCE_COMMAND } from '../support/command.ts';
import { type CliOutput, newDirectory, type ProcessOptions, runCli, runProcess } from './run-cli.ts';

/** Runs the command of this checkout. */
function runSource(args: readonly string[], options: ProcessOptions = {}): Promise<CliOutput> {
  return runProcess(args, { ...options, command: SOURCE_COMMAND });
}

describe('quittance', () => {
  test('--help names every command and every exit code', async () => {
    const { code, stdout, stderr } = await runSource(['--help']);
    expect(code).toBe(0);
    expect(stderr).toBe('');
    for (const name of ['start', 'migrate', 'project', 'key', 'address', 'webhook', 'sandbox', 'devnet']) {
      expect(stdout).toMatch(new RegExp(`^ {2}${name} `, 'm'));
    }
    for (const exit of ['0  done', '1  failed', '2  wrong', '3  not found', '4  conflict', '5  unavailable']) {
      expect(stdout).toContain(`  ${exit}`);
    }
  });

  test('the help of a command names its own options and --json', async () => {
    const { code, stdout } = await runCli(['key', 'create', '--help']);
    expect(code).toBe(0);
    for (const option of ['--project', '--name', '--expires', '--allow-ip', '--json']) expect(stdout).toContain(option);
  });

  test('--version is the one of package.json', async () => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
    expect(await runSource(['--version'])).toMatchObject({ code: 0, stdout: `${version}\n` });
  });

  test('--help loads no module of the service', async () => {
    const coverage = newDirectory();
    await runSource(['--help'], { env: { NODE_V8_COVERAGE: coverage } });
    const loaded = readdirSync(coverage).flatMap((file) => {
      const report: { result: { url: string }[] } = JSON.parse(readFileSync(join(coverage, file), 'utf8'));
      return report.result.map(({ url }) => url);
    });
    expect(loaded.some((url) => url.includes('/commander/'))).toBe(true);
    const heavy =
      /node_modules\/(pg|pino|fastify|typebox|undici|@noble|@scure|prom-client)\/|dist\/(store|tron|domain(?!\/(policy|code-word|money|errors|message|network)\.)|web)\//;
    expect(loaded.filter((url) => heavy.test(url))).toEqual([]);
  });

  test('runs in a directory whose tsconfig.json is broken and belongs to somebody else', async () => {
    const cwd = newDirectory();
    mkdirSync(join(cwd, 'src'));
    writeFileSync(join(cwd, 'tsconfig.json'), '{ "extends": "./missing.json", ');
    expect(await runSource(['--version'], { cwd })).toMatchObject({ code: 0, stderr: '' });
  });

  test('a misspelt command is a usage error that says what was meant', async () => {
    const { code, stdout, stderr } = await runSource(['proect', 'list']);
    expect(code).toBe(2);
    expect(stdout).toBe('');
    expect(stderr).toContain("unknown command 'proect' (Did you mean project?)");
  });

  test('a misspelt option is a usage error that says what was meant', async () => {
    const { code, stderr } = await runCli(['key', 'create', '--expire', '90d']);
    expect(code).toBe(2);
    expect(stderr).toContain("unknown option '--expire' (Did you mean --expires?)");
  });

  test('a group without a command shows its help on standard error', async () => {
    const { code, stdout, stderr } = await runCli(['project']);
    expect(code).toBe(2);
    expect(stdout).toBe('');
    expect(stderr).toContain('create [options]');
    expect(stderr).toContain('error: no command was given');
  });

  test('with --json a usage error is one object on standard output, wherever --json stands', async () => {
    for (const args of [
      ['--json', 'project', 'lst'],
      ['project', 'lst', '--json'],
    ]) {
      const { code, json } = await runCli(args);
      expect(code).toBe(2);
      expect(json).toEqual({ error: { code: 'USAGE', message: expect.stringContaining('Did you mean list?') } });
    }
  });

  test('a missing option is named', async () => {
    const { code, json } = await runCli(['project', 'create', '--network', 'nile', '--json']);
    expect(code).toBe(2);
    expect(json.error.message).toContain("required option '--name <name>'");
  });

  test('every problem of the configuration is reported at once, and the service does not start', async () => {
    const env = { QUITTANCE_PORT: '99999', QUITTANCE_ROLES: 'api', DATABSE_URL: 'postgres://u:h0rse@h/d' };
    const [text, json] = await Promise.all([
      runSource(['start'], { env }),
      runCli(['project', 'list', '--json'], { env }),
    ]);
    expect(text.code).toBe(2);
    expect(text.stderr).toContain('QUITTANCE_PORT is "99999"');
    expect(text.stderr).toContain('QUITTANCE_ROLES is "api"');
    expect(text.stderr).toContain('did you mean DATABASE_URL?');
    expect(text.stderr).not.toContain('h0rse');
    expect(json.json.error).toMatchObject({
      code: 'CONFIG_INVALID',
      errors: expect.arrayContaining([{ subject: 'QUITTANCE_PORT', message: expect.any(String) }]),
    });
  });

  test('sandbox pay wants a known scenario, and a second invoice for two-in-one only', async () => {
    const pay = (...args: string[]) => runCli(['sandbox', 'pay', 'inv_x', ...args]);
    const [unknown, needless] = await Promise.all([pay('--scenario', 'free'), pay('--with', 'inv_y')]);
    expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining('Allowed choices are exact, short') });
    expect(needless).toMatchObject({ code: 2, stderr: expect.stringContaining('only with --scenario two-in-one') });
  });
});
