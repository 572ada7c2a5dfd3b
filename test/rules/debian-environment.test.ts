import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { SETTINGS } from '../../src/server/config/settings.ts';

const FOLDER = new URL('../../deploy/debian/', import.meta.url);

async function parse(text: string): Promise<Record<string, string>> {
  const { parseEnvironment } = await import(new URL('parse-environment.js', FOLDER).href);
  return parseEnvironment(text);
}

test('the settings of the package are read as systemd reads them', async () => {
  const text = `# nodes
; and more
QUITTANCE_MAINNET_NODES=https://a.example#rps=15&daily=9,https://b.example
  QUITTANCE_MANIFEST_KEYS="2 of KEY1 KEY2"
QUITTANCE_HOST='::1'
QUITTANCE_PUBLIC_URL= https://pay.example.com $x

EMPTY=
`;
  expect(await parse(text)).toEqual({
    QUITTANCE_MAINNET_NODES: 'https://a.example#rps=15&daily=9,https://b.example',
    QUITTANCE_MANIFEST_KEYS: '2 of KEY1 KEY2',
    QUITTANCE_HOST: '::1',
    QUITTANCE_PUBLIC_URL: 'https://pay.example.com $x',
    EMPTY: '',
  });
});

test.each(['export A=secret', 'A =secret', 'A=secret\\', '# goes on \\', 'A="secret', 'A=sec"ret"', 'secret'])(
  'what systemd would read in another way is refused, and not repeated: %s',
  async (line) => {
    await expect(parse(`B=1\n${line}\n`)).rejects.toThrow(/^line 2 is not NAME=value: (?!.*secret)/);
  },
);

test('the template of the package sets where backups go, and names only settings that there are', async () => {
  const template = await readFile(new URL('env', FOLDER), 'utf8');
  expect(await parse(template)).toEqual({ QUITTANCE_BACKUP_DIR: '/var/backups/quittance' });
  const named = [...template.matchAll(/^#?([A-Z_]+)=/gm)].map(([, name = '']) => name.replace(/_FILE$/, ''));
  expect(named.length).toBeGreaterThan(3);
  expect(named.filter((name) => !(name in SETTINGS))).toEqual([]);
});
