import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { copyFile, cp, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { eventually, type Json } from '../../support/service.ts';
import { findSteadyPort } from '../../support/steady-port.ts';

const PLUGINS = resolve(import.meta.dirname, '../../../plugins');
const WORDPRESS = process.env['QUITTANCE_TEST_WORDPRESS'] ?? '/usr/share/wordpress';
const WOOCOMMERCE = process.env['QUITTANCE_TEST_WOOCOMMERCE'] ?? '';

export type Shop = {
  url: string;
  /** The versions that WooCommerce and WordPress report. */
  versions: string;
  ask(action: string, order?: number, value?: string): Promise<Json>;
  stop(): Promise<void>;
};

/** Returns why no shop can be started here, or null. */
export function whyNoShop(): string | null {
  if (!existsSync('/usr/sbin/mariadbd')) return 'mariadb-server is not installed';
  if (!existsSync(join(WORDPRESS, 'wp-load.php'))) return `there is no WordPress in ${WORDPRESS}`;
  if (!existsSync(join(WOOCOMMERCE, 'woocommerce.php'))) {
    return 'QUITTANCE_TEST_WOOCOMMERCE names no folder of WooCommerce, as its release unpacks';
  }
  return null;
}

/** Whether the machine's PHP has these extensions. */
export function hasPhp(...extensions: string[]): Promise<boolean> {
  const asked = extensions.map((name) => `extension_loaded('${name}')`).join(' && ');
  return promisify(execFile)('php', ['-r', `exit(${asked} ? 0 : 1);`]).then(
    () => true,
    () => false,
  );
}

/** Starts a shop in `folder`, with its own database behind a Unix socket. */
export async function startShop(folder: string, settings: object): Promise<Shop> {
  const stopDatabase = await startDatabase(folder);
  try {
    return await startSite(folder, settings, stopDatabase);
  } catch (error) {
    await stopDatabase();
    throw error;
  }
}

async function startSite(folder: string, settings: object, stopDatabase: () => Promise<void>): Promise<Shop> {
  const port = await findSteadyPort();
  const url = `http://127.0.0.1:${port}`;
  const site = join(folder, 'site');
  await makeSite(folder, site, url);
  const install = (step: string) =>
    run('php', [join(import.meta.dirname, 'install.php'), site, step, JSON.stringify(settings)]);
  await install('wordpress');
  const versions = await install('woocommerce');
  const server = spawn('php', ['-S', `127.0.0.1:${port}`, '-t', site], {
    env: { PATH: process.env['PATH'], PHP_CLI_SERVER_WORKERS: '6' },
    stdio: 'ignore',
    detached: true,
  });
  const ask = async (action: string, order = 0, value = '') => {
    const query = new URLSearchParams({ 'quittance-test': action, order: String(order), value });
    const answer = await fetch(`${url}/?${query}`);
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${action} of the shop: ${answer.status} ${text.slice(0, 2000)}`);
    return JSON.parse(text);
  };
  await eventually(
    () => fetch(`${url}/?wc-api=quittance`).catch(() => null),
    (answer) => answer !== null,
  );
  return {
    url,
    versions,
    ask,
    stop: async () => {
      const ended = once(server, 'close');
      // Its workers belong to its process group.
      if (server.pid !== undefined) process.kill(-server.pid, 'SIGTERM');
      await ended;
      await stopDatabase();
    },
  };
}

async function run(command: string, parameters: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(command, parameters, { maxBuffer: 16 * 1024 * 1024 });
  return stdout;
}

async function startDatabase(folder: string): Promise<() => Promise<void>> {
  const data = join(folder, 'mariadb');
  const user = process.getuid?.() === 0 ? ['--user=root'] : [];
  await run('mariadb-install-db', ['--no-defaults', `--datadir=${data}`, '--skip-test-db', ...user]);
  const server = spawn(
    '/usr/sbin/mariadbd',
    [
      ...['--no-defaults', `--datadir=${data}`, `--socket=${socketOf(folder)}`, '--skip-networking'],
      ...['--skip-grant-tables', `--pid-file=${join(folder, 'mariadb.pid')}`, ...user],
    ],
    { stdio: 'ignore' },
  );
  const ended = once(server, 'close');
  const client = ['--no-defaults', `--socket=${socketOf(folder)}`, '-e', 'create database if not exists shop'];
  await eventually(
    () =>
      run('mariadb', client).then(
        () => true,
        () => false,
      ),
    (isThere) => isThere,
  );
  return async () => {
    server.kill('SIGTERM');
    await ended;
  };
}

const THEME = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Shop</title><?php wp_head(); ?></head>
<body <?php body_class(); ?>><?php while (have_posts()) { the_post(); the_content(); } wp_footer(); ?></body></html>`;

const socketOf = (folder: string) => join(folder, 'mariadb.sock');

async function makeSite(folder: string, site: string, url: string): Promise<void> {
  await cp(WORDPRESS, site, { recursive: true, dereference: true, filter: (path) => existsSync(path) });
  const plugin = join(site, 'wp-content/plugins/quittance-for-woocommerce');
  await mkdir(join(site, 'wp-content/mu-plugins'), { recursive: true });
  await symlink(resolve(WOOCOMMERCE), join(site, 'wp-content/plugins/woocommerce'));
  // Packed as the README describes.
  await cp(join(PLUGINS, 'woocommerce'), plugin, { recursive: true });
  await copyFile(join(PLUGINS, 'php/Quittance.php'), join(plugin, 'Quittance.php'));
  await copyFile(
    join(import.meta.dirname, 'quittance-test.php'),
    join(site, 'wp-content/mu-plugins/quittance-test.php'),
  );
  // Debian's WordPress comes without a theme.
  const theme = join(site, 'wp-content/themes/plain');
  await mkdir(theme, { recursive: true });
  await writeFile(join(theme, 'style.css'), '/* Theme Name: Plain */');
  await writeFile(join(theme, 'index.php'), THEME);
  const constants = {
    DB_NAME: 'shop',
    DB_USER: 'root',
    DB_PASSWORD: '',
    DB_HOST: `localhost:${socketOf(folder)}`,
    DB_CHARSET: 'utf8mb4',
    DB_COLLATE: '',
    WP_HOME: url,
    WP_SITEURL: url,
    WP_HTTP_BLOCK_EXTERNAL: true,
    DISABLE_WP_CRON: true,
    WP_DEBUG: false,
  };
  const lines = Object.entries(constants).map(([name, value]) => `define('${name}', ${JSON.stringify(value)});`);
  const end =
    "$table_prefix = 'wp_';\nif (!defined('ABSPATH')) define('ABSPATH', __DIR__ . '/');\nrequire ABSPATH . 'wp-settings.php';";
  await writeFile(join(site, 'wp-config.php'), `<?php\n${lines.join('\n')}\n${end}\n`);
}
