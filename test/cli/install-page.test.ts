import { execFile } from 'node:child_process';
import { chmod, mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { copyCheckout, linkProductionPackages, newFolder } from '../support/checkout-copy.ts';

const run = promisify(execFile);
const readHere = (path: string) => readFile(new URL(`../../${path}`, import.meta.url), 'utf8');

/** The first block of commands under a heading of docs/install.md. */
async function blockOf(heading: string): Promise<string> {
  const page = await readHere('docs/install.md');
  const [, block] = new RegExp(`\\n## ${heading}\\n[\\s\\S]*?\`\`\`sh\\n([\\s\\S]*?)\`\`\``).exec(page) ?? [];
  return block ?? expect.fail(`docs/install.md has no commands under ${heading}`);
}

/** The package as npm makes it, with what it depends on, for no test needs the network. */
async function packQuittance(): Promise<string> {
  const [checkout, folder] = [await copyCheckout(), await newFolder()];
  await run('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: checkout });
  const [archive = ''] = await readdir(folder);
  await run('tar', ['-xzf', archive], { cwd: folder });
  const own = join(folder, 'quittance');
  await rename(join(folder, 'package'), own);
  await mkdir(join(own, 'node_modules'));
  await linkProductionPackages(join(own, 'node_modules'));
  return own;
}

/** In place of Docker: `run` runs the command of the package, and everything is written down. */
const DOCKER = `#!/bin/sh
echo "$*" >> "$LOG"
case "$1 $2 $3" in "run --rm quittance") shift 3; exec quittance "$@";; esac
`;

test('the commands of the page of installation do what it says, by npm and up to what Docker does', async () => {
  const [quittance, prefix, folder] = [await packQuittance(), await newFolder(), await newFolder()];
  const bin = join(prefix, 'bin');
  const env = {
    ...{ PATH: `${bin}:${dirname(process.execPath)}:${process.env['PATH']}`, HOME: folder, EDITOR: 'true' },
    ...{ npm_config_prefix: prefix, npm_config_offline: 'true', LOG: join(folder, 'log') },
  };
  const sh = (block: string) => run('sh', ['-euc', block], { cwd: folder, env });

  const npm = await blockOf('npm');
  const { stdout } = await sh(npm.replace('--global quittance', `--global ${quittance}`));
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
  // It is taken as it stands: what is missing here is a database, and not an option.
  const refused = await sh(`DATABASE_URL=postgres://127.0.0.1:1/none quittance ${args}`).catch((error) => error);
  expect(refused.stderr).toMatch(/database/i);
  expect(refused.stderr).not.toMatch(/unknown|missing required|too many/i);
});
