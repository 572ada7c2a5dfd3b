import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { readConfig } from '../../src/server/config/config.ts';
import { runCli } from '../cli/run-cli.ts';
import { fillVariables, readEnvFile } from '../support/compose.ts';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const text = read('compose.yaml');
type Service = Record<string, unknown> & { environment?: Record<string, string>; image: string; ports?: string[] };
const { services } = parse(text, { merge: true }) as { services: Record<string, Service> };

const written = async () => {
  const { code, stdout } = await runCli(['setup', '--site', 'Pay.Example.com', '--output', '-']);
  expect(code).toBe(0);
  return readEnvFile(stdout);
};

test('what "setup" writes is all that compose.yaml asks for, and what the service takes', async () => {
  const env = await written();
  const asked = [...text.matchAll(/\$\{([A-Z_]+)/g)].map(([, name]) => name);
  // Variables with a default may appear there, but needn't.
  expect(new Set(asked)).toEqual(new Set([...Object.keys(env), 'QUITTANCE_VERSION', 'QUITTANCE_ROW_MACS']));
  const nodes = { QUITTANCE_NILE_NODES: 'https://nile.trongrid.io' };
  for (const name of ['migrate', 'quittance']) {
    const own = Object.entries(services[name]?.environment ?? {});
    const config = readConfig(
      Object.fromEntries(own.map(([key, value]) => [key, fillVariables(String(value), { ...env, ...nodes })])),
    );
    expect(config).toMatchObject({ kind: 'ok' });
  }
  expect(fillVariables(services['quittance']?.environment?.['QUITTANCE_PUBLIC_URL'] ?? '', env)).toBe(
    'https://pay.example.com',
  );
});

test("the console's page opens it with compose.yaml, as the proxy reaches it", async () => {
  const page = read('docs/guides/console.md');
  const block = /```yaml\n(.*?)```/s.exec(page)?.[1] ?? '';
  const { services: changed } = parse(block) as { services: typeof services };
  const env = await written();
  const own = { ...services['quittance']?.environment, ...changed['quittance']?.environment };
  const variables = Object.entries(own).map(([key, value]) => [key, fillVariables(String(value), env)]);
  expect(
    readConfig(Object.fromEntries([...variables, ['QUITTANCE_NILE_NODES', 'https://nile.trongrid.io']])),
  ).toMatchObject({
    kind: 'ok',
    config: { console: { port: 8081, host: '0.0.0.0' } },
  });
});

test('the secrets are made anew each time, and only the proxy is reached from outside', async () => {
  const [one, other] = [await written(), await written()];
  for (const name of ['QUITTANCE_MASTER_KEY', 'POSTGRES_PASSWORD', 'QUITTANCE_DATABASE_PASSWORD']) {
    expect(one[name]).toMatch(/^[A-Za-z0-9+/=_-]{32,44}$/);
    expect(one[name]).not.toBe(other[name]);
  }
  expect(Object.keys(services).filter((name) => services[name]?.ports !== undefined)).toEqual(['caddy']);
  for (const name of ['migrate', 'quittance']) {
    expect(services[name]).toMatchObject({ read_only: true, cap_drop: ['ALL'] });
    expect(services[name]?.['security_opt']).toEqual(['no-new-privileges:true']);
  }
});

test('what makes backups has the PostgreSQL that verifies them, and room on the disk for it', () => {
  const makers = Object.values(services).filter(
    ({ environment }) => environment?.['QUITTANCE_BACKUP_DIR'] !== undefined,
  );
  expect(makers).toHaveLength(1);
  for (const { build, environment, volumes } of makers) {
    expect(build).toEqual({ context: '.', target: 'embedded' });
    // /tmp is in memory, and the scratch database holds the whole ledger.
    expect(environment?.['TMPDIR']).toBe(environment?.['QUITTANCE_BACKUP_DIR']);
    expect(volumes).toContain(`backups:${environment?.['TMPDIR']}`);
  }
});

test('the image has what the compose file and its own checks name', () => {
  const image = read('Dockerfile');
  expect(image).toMatch(/^USER 10001:10001$/m);
  for (const path of ['deploy/docker/health.js', 'deploy/docker/Caddyfile', 'deploy/docker/roles.sh']) read(path);
  const stages = [...image.matchAll(/^FROM \S+ AS (\S+)$/gm)].map(([, name]) => name);
  // Docker builds the last stage by default.
  expect(stages.at(-1)).toBe('quittance');
  expect(stages).toContain('embedded');
});

test.each(['https://pay.example.com', 'pay.example.com:8443', 'localhost', '10.0.0.1', ''])(
  'the site %j is refused with what is wanted',
  async (site) => {
    expect(await runCli(['setup', '--site', site, '--output', '-'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('must be a host name only'),
    });
  },
);
