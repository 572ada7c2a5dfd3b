import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { FILE_VARIABLES, VARIABLES } from '../../src/config/settings.ts';

/** What a stolen process must not be able to do, and why it needs none of it: docs/decisions/0052-transport-and-secrets.md. */
const HARDENING = {
  CapabilityBoundingSet: '',
  NoNewPrivileges: 'yes',
  UMask: '0077',
  LimitCORE: '0',
  ProtectSystem: 'strict',
  ProtectHome: 'yes',
  PrivateTmp: 'yes',
  PrivateDevices: 'yes',
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

const UNITS = ['quittance.service', 'ha/quittance@.service'];

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

  test('lets V8 compile at run time', async () => {
    expect((await settingsOf(unit)).map(([name]) => name)).not.toContain('MemoryDenyWriteExecute');
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
    const known: readonly string[] = [...VARIABLES, ...FILE_VARIABLES.keys()];
    expect(named.filter((variable) => !known.includes(variable))).toEqual([]);
  });
});
