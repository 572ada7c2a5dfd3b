import { access, readdir, readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { createMetrics } from '../../src/core/runtime/metrics.ts';
import { FILE_VARIABLES, VARIABLES } from '../../src/server/config/settings.ts';

const GUIDES = new URL('../../docs/guides/', import.meta.url);
const EXPLAINED = new URL('../../docs/explained/', import.meta.url);
/** Variables that commands and shops' programs read. */
const OF_PROGRAMS = ['SERVER', 'ADMIN_KEY', 'URL', 'API_KEY', 'WEBHOOK_SECRET'].map((name) => `QUITTANCE_${name}`);
const PATRONI = new URL('../../deploy/ha/patroni.yml', import.meta.url);

async function readAll(folder: URL): Promise<string[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.md'));
  return Promise.all(names.map((name) => readFile(new URL(name, folder), 'utf8')));
}

const page = (await Promise.all([GUIDES, EXPLAINED].map(readAll))).flat().join('\n');

function named(pattern: RegExp): string[] {
  return [...new Set([...page.matchAll(pattern)].map(([text, first]) => first ?? text))];
}

test('every metric that the guides name is one of the service', () => {
  const known = new Set(
    createMetrics()
      .registry.getMetricsAsArray()
      .map(({ name }) => name),
  );
  // Database roles and a Medusa provider have similar names.
  const metrics = named(/\bquittance_(?!owner\b|runtime\b|quittance\b)[a-z_]+/g).map((name) =>
    name.replace(/_count$/, ''),
  );
  expect(metrics.length).toBeGreaterThan(4);
  expect(metrics.filter((name) => !known.has(name))).toEqual([]);
});

test('every variable that the guides name is one of the service', () => {
  const variables = named(/\bQUITTANCE_[A-Z_]+/g);
  expect(variables.length).toBeGreaterThan(5);
  const known: readonly string[] = [...VARIABLES, ...FILE_VARIABLES.keys(), ...OF_PROGRAMS];
  expect(variables.filter((name) => !known.includes(name))).toEqual([]);
});

test('every file of the project that the guides link to is there', async () => {
  const paths = named(/\]\(((?:\.\.\/)+(?:deploy|docs\/decisions|decisions)\/[^)#]+)/g);
  expect(paths.length).toBeGreaterThan(4);
  await Promise.all(paths.map((path) => access(new URL(path, GUIDES))));
});

test('the configuration of Patroni acknowledges nothing that one machine alone has, and its times fit into each other', async () => {
  const text = await readFile(PATRONI, 'utf8');
  const settingOf = (key: string) => new RegExp(`^ +${key}: (\\S+)$`, 'm').exec(text)?.[1];
  expect(settingOf('synchronous_mode')).toBe('true');
  expect(settingOf('synchronous_mode_strict')).toBe('true');
  expect(settingOf('synchronous_commit')).toBe('"on"');
  expect(Number(settingOf('loop_wait')) + 2 * Number(settingOf('retry_timeout'))).toBeLessThanOrEqual(
    Number(settingOf('ttl')),
  );
});

test('the configuration of Patroni takes no connection over the network without TLS, and its own verify whom they reach', async () => {
  const lines = (await readFile(PATRONI, 'utf8')).split('\n').map((line) => line.trim());
  const rules = lines.filter((line) => /^- (local|host\w*) /.test(line)).map((line) => line.split(' ')[1]);
  expect(rules.length).toBeGreaterThan(2);
  expect([...new Set(rules)]).toEqual(['local', 'hostssl']);
  expect(lines).toContain('ssl: "on"');
  expect(lines.filter((line) => line === 'sslmode: verify-full')).toHaveLength(2);
});
