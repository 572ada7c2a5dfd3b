import { execFile } from 'node:child_process';
import { chmod, mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect } from 'vitest';
import { parse } from 'yaml';
import { copyCheckout, linkProductionPackages, newFolder } from '../support/checkout-copy.ts';
import { longTest } from '../support/some-cases.ts';
import { findSteadyPort } from '../support/steady-port.ts';

const run = promisify(execFile);
const readHere = (path: string) => readFile(new URL(`../../${path}`, import.meta.url), 'utf8');

/** Returns the first block of commands under a heading of a page. */
async function blockOf(heading: string, page = 'docs/guides/install.md'): Promise<string> {
  const text = await readHere(page);
  const [, block] = new RegExp(`\\n## ${heading}\\n[\\s\\S]*?\`\`\`sh\\n([\\s\\S]*?)\`\`\``).exec(text) ?? [];
  return block ?? expect.fail(`${page} has no commands under ${heading}`);
}

/** Builds the package with npm, including its dependencies, because tests must not need the network. */
async function packQuittance(): Promise<string> {
  const [checkout, folder] = [await copyCheckout(['src', 'packages', 'deploy']), await newFolder()];
  await run('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: checkout });
  const [archive = ''] = await readdir(folder);
  await run('tar', ['-xzf', archive], { cwd: folder });
  const own = join(folder, 'quittance');
  await rename(join(folder, 'package'), own);
  await mkdir(join(own, 'node_modules'));
  await linkProductionPackages(join(own, 'node_modules'));
  return own;
}

let quittance: string;
beforeAll(async () => {
  quittance = await packQuittance();
});

/** Replaces Docker: `run` runs the package's command, and every call is logged. */
const DOCKER = `#!/bin/sh
echo "$*" >> "$LOG"
case "$1 $2 $3" in "run --rm quittance") shift 3; exec quittance "$@";; esac
`;

longTest('the commands of the page of installation do what it says, by npm and up to what Docker does', async () => {
  const [prefix, folder] = [await newFolder(), await newFolder()];
  const bin = join(prefix, 'bin');
  const env = {
    ...{ PATH: `${bin}:${dirname(process.execPath)}:${process.env['PATH']}`, HOME: folder, EDITOR: 'true' },
    ...{ npm_config_prefix: prefix, npm_config_offline: 'true', LOG: join(folder, 'log') },
  };
  const sh = (block: string) => run('sh', ['-euc', block], { cwd: folder, env });

  const npm = await blockOf('npm');
  const { stdout } = await sh(npm.replace('./quittance-0.1.0.tgz', quittance));
  const { version } = JSON.parse(await readHere('package.json'));
  expect(stdout.trim().split('\n').at(-1)).toBe(version);

  await writeFile(join(bin, 'docker'), DOCKER);
  await chmod(join(bin, 'docker'), 0o755);
  const block = await blockOf('Compose');
  await sh(block);
  const settings = await readFile(join(folder, '.env'), 'utf8');
  expect((await stat(join(folder, '.env'))).mode & 0o777).toBe(0o600);
  const written = [...settings.matchAll(/^([A-Z_]+)=./gm)].map(([, name = '']) => name);
  const compose = await readHere('compose.yaml');
  for (const [, needed = ''] of compose.matchAll(/\$\{([A-Z_]+):\?/g)) expect(written).toContain(needed);
  const [build, setup, up] = (await readFile(env.LOG, 'utf8')).trim().split('\n');
  expect([build, up]).toEqual(['build --target embedded --tag quittance .', 'compose up --detach']);
  expect(setup).toMatch(/^run --rm quittance setup --site /);
  const [, service = '', path = '', args = ''] =
    /^docker compose exec (\w+) node \/app\/(\S+) (.+)$/m.exec(block) ?? [];
  expect(Object.keys(parse(compose, { merge: true }).services)).toContain(service);
  await stat(join(quittance, path));
  // The arguments are accepted, so only the database is missing.
  const refused = await sh(`DATABASE_URL=postgres://127.0.0.1:1/none quittance ${args}`).catch((error) => error);
  expect(refused.stderr).toMatch(/database/i);
  expect(refused.stderr).not.toMatch(/unknown|missing required|too many/i);
});

/** A shop's test, in the job that the page describes. */
const SHOP_TEST = `
ask() { path="$1"; shift; curl -fsS "$QUITTANCE_URL$path" -H "X-Api-Key: $QUITTANCE_API_KEY" -H 'Content-Type: application/json' "$@"; }
ask /v1/invoices -H 'Idempotency-Key: order-1' -d '{"amount":"25.00","asset":"USDT","network":"TRON","externalId":"order-1"}'; echo
ask /sandbox/pay -d '{"invoice":"order-1"}'; echo
kill $!; wait $! || true
`;

longTest(
  'the commands for CI start a sandbox that a shop’s tests can pay in, and the jobs of the page run them',
  async () => {
    const [folder, port] = [await newFolder(), await findSteadyPort()];
    const block = (await blockOf('In CI', 'docs/guides/listen.md')).replace('./quittance-0.1.0.tgz', quittance);
    const env = { PATH: process.env['PATH'], HOME: folder, npm_config_offline: 'true', QUITTANCE_PORT: `${port}` };
    const commands = block.replace(':8080', `:${port}`) + SHOP_TEST;
    const { stdout } = await run('sh', ['-euc', commands], { cwd: folder, env }).catch((error) =>
      expect.fail(error.stdout + error.stderr),
    );
    const [paid, created] = stdout.trim().split('\n').reverse();
    expect(JSON.parse(created ?? '')).toMatchObject({ status: 'PENDING', externalId: 'order-1' });
    expect(JSON.parse(paid ?? '')).toMatchObject({ scenario: 'exact', sent: [{ amount: expect.any(String) }] });

    const [, section = ''] = (await readHere('docs/guides/listen.md')).split('\n## In CI\n');
    const jobs = [...section.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, job = '']) => parse(job));
    const stepsOf = (job: { jobs: { test: { steps: { run?: string }[] } } }) => job.jobs.test.steps.at(-1)?.run;
    expect(stepsOf(jobs[0])).toMatch(/^\. ci\/quittance\.sh\n/);
    expect(jobs[1].test.script[0]).toBe('. ci/quittance.sh');
    expect(stepsOf(jobs[2])).toContain('export QUITTANCE_API_KEY=');
  },
);
