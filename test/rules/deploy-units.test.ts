import { execFile, spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { EXIT } from '../../src/cli/terminal/describe-error.ts';
import { FILE_VARIABLES, VARIABLES } from '../../src/server/config/settings.ts';

/** Rights that a compromised process must not have. docs/decisions/0052-transport-and-secrets.md says why the service doesn't need them. */
const HARDENING = {
  CapabilityBoundingSet: '',
  NoNewPrivileges: 'yes',
  UMask: '0077',
  LimitCORE: '0',
  ProtectSystem: 'strict',
  ProtectHome: 'yes',
  PrivateTmp: 'yes',
  PrivateDevices: 'yes',
  PrivateMounts: 'yes',
  ProtectKernelTunables: 'yes',
  ProtectKernelModules: 'yes',
  ProtectKernelLogs: 'yes',
  ProtectControlGroups: 'yes',
  ProtectClock: 'yes',
  ProtectHostname: 'yes',
  ProtectProc: 'invisible',
  RestrictAddressFamilies: 'AF_UNIX AF_INET AF_INET6',
  RestrictNamespaces: 'yes',
  RestrictRealtime: 'yes',
  RestrictSUIDSGID: 'yes',
  LockPersonality: 'yes',
  SystemCallArchitectures: 'native',
  SystemCallFilter: '@system-service',
  SystemCallErrorNumber: 'EPERM',
};

/** How systemd monitors and restarts the service: docs/decisions/0082-systemd-and-debian.md. */
const LIFE = {
  Type: 'notify',
  NotifyAccess: 'all',
  TimeoutStartSec: 'infinity',
  WatchdogSec: '60',
  Restart: 'always',
  RestartSec: '2',
  RestartPreventExitStatus: String(EXIT.usage),
  SuccessExitStatus: '130',
};

const UNITS = ['quittance.service', 'ha/quittance@.service'];

const run = promisify(execFile);
/** Not every machine has systemd, and `--offline` requires version 250. */
const HAS_SYSTEMD = /--offline/.test(String(spawnSync('systemd-analyze', ['--help']).stdout));

async function settingsOf(unit: string): Promise<[name: string, value: string][]> {
  const text = await readFile(new URL(`../../deploy/${unit}`, import.meta.url), 'utf8');
  return text.split('\n').flatMap((line) => {
    const [, name = '', value = ''] = /^(\w+)=(.*)$/.exec(line) ?? [];
    return name === '' ? [] : [[name, value] as [string, string]];
  });
}

describe.each(UNITS)('deploy/%s', (unit) => {
  test('takes from the process all that it does not need, each once', async () => {
    const settings = await settingsOf(unit);
    const found = settings.filter(([name]) => name in HARDENING);
    expect(found).toEqual(Object.entries(HARDENING));
    expect(settings).toContainEqual(['User', 'quittance']);
  });

  test.skipIf(!HAS_SYSTEMD)('is exposed by 2.0 of 10 at most, as systemd-analyze says', async () => {
    const path = fileURLToPath(new URL(`../../deploy/${unit}`, import.meta.url));
    await run('systemd-analyze', ['security', '--offline=true', '--threshold=20', path]);
  });

  test('lets V8 compile at run time', async () => {
    expect((await settingsOf(unit)).map(([name]) => name)).not.toContain('MemoryDenyWriteExecute');
  });

  test('is started again but for a wrong setting, and is looked at while it runs', async () => {
    const found = (await settingsOf(unit)).filter(([name]) => name in LIFE);
    expect(found).toEqual(Object.entries(LIFE));
  });

  test('gives secrets by files of systemd only, to variables that there are', async () => {
    const text = await readFile(new URL(`../../deploy/${unit}`, import.meta.url), 'utf8');
    const credentials = [...text.matchAll(/^#?LoadCredential=([a-z-]+):\/etc\/quittance\/\1$/gm)].map(
      ([, name]) => name,
    );
    const files = [...text.matchAll(/^#?Environment=(\w+_FILE)=%d\/([a-z-]+)$/gm)];
    expect(files.map(([, variable]) => variable)).toEqual(['DATABASE_URL_FILE', 'QUITTANCE_MASTER_KEY_FILE']);
    expect(files.map(([, , name]) => name)).toEqual(credentials);
    const named = [...text.matchAll(/^#?Environment=(\w+)=/gm)].map(([, variable = '']) => variable);
    const known: readonly string[] = [...VARIABLES, ...FILE_VARIABLES.keys(), 'TMPDIR'];
    expect(named.filter((variable) => !known.includes(variable))).toEqual([]);
  });
});
