import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { type ConfigResult, readConfig } from './config.ts';
import { FILE_VARIABLES } from './settings.ts';

const KEY = Buffer.alloc(32, 7).toString('base64');
const GOOD: Record<string, string> = {
  DATABASE_URL: 'postgres://u:h0rse@localhost/q',
  DATABASE_OWNER_URL: 'postgres://o:h0rse@localhost/q',
  QUITTANCE_TRON_API_KEY: 'h0rse-key',
  QUITTANCE_MASTER_KEY: KEY,
  QUITTANCE_BACKUP_RECIPIENT: 'age194n2j79vnualseq7lw0ca8lc700fudxw5555uzd63csgd59cmvsqjdv4w6',
  QUITTANCE_MAINNET_NODES: 'https://a.example#key=h0rse,https://b.test/h0rse',
  QUITTANCE_NILE_NODES: 'https://nile.trongrid.io',
  QUITTANCE_DEVNET_NODES: 'http://127.0.0.1:9090/h0rse',
};
const NODES = { QUITTANCE_NILE_NODES: GOOD['QUITTANCE_NILE_NODES'] };
const USDT = { QUITTANCE_DEVNET_USDT: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t' };

/** Other variables that a variable requires. */
const NEEDS: Record<string, Record<string, string | undefined>> = {
  QUITTANCE_DEVNET_NODES: USDT,
  QUITTANCE_TRON_API_KEY: NODES,
  DATABASE_OWNER_URL: { DATABASE_URL: GOOD['DATABASE_URL'] },
};

const directory = mkdtempSync(join(tmpdir(), 'quittance-secrets-'));
afterAll(() => rmSync(directory, { recursive: true }));

let count = 0;
function file(content: string | Buffer, mode = 0o600): string {
  count += 1;
  const path = join(directory, `secret-${count}`);
  writeFileSync(path, content);
  chmodSync(path, mode);
  return path;
}

function refused(env: NodeJS.ProcessEnv): { variable: string; message: string }[] {
  const result: ConfigResult = readConfig(env);
  expect(JSON.stringify(result.kind === 'ok' ? [] : result)).not.toMatch(new RegExp(`h0rse|${KEY.slice(0, 8)}`));
  return result.kind === 'ok' ? [] : result.errors;
}

test('every secret, and every list of nodes, which may hold keys, may stand in a file, with the same effect', () => {
  expect([...FILE_VARIABLES.values()].sort()).toEqual(Object.keys(GOOD).sort());
  const inFiles = Object.entries(GOOD).map(([variable, text]) => [`${variable}_FILE`, file(`${text}\n`)]);
  const expected = readConfig({ ...USDT, ...GOOD });
  expect(expected.kind).toBe('ok');
  expect(readConfig({ ...USDT, ...Object.fromEntries(inFiles) })).toEqual(expected);
});

test('the end of the line, of either kind, and space around the text are no part of a secret', () => {
  for (const text of [`${KEY}`, `${KEY}\n`, `${KEY}\r\n`, ` ${KEY} \n`, `\uFEFF${KEY}\n`]) {
    expect(readConfig({ QUITTANCE_MASTER_KEY_FILE: file(text) })).toMatchObject({ config: { masterKeys: [KEY] } });
  }
});

test('an empty variable counts as unset, on either side', () => {
  const path = file(KEY);
  expect(refused({ QUITTANCE_MASTER_KEY: KEY, QUITTANCE_MASTER_KEY_FILE: ' ' })).toEqual([]);
  expect(refused({ QUITTANCE_MASTER_KEY: '', QUITTANCE_MASTER_KEY_FILE: path })).toEqual([]);
});

describe.each(Object.entries(GOOD))('%s_FILE', (secret, text) => {
  const variable = `${secret}_FILE`;
  const rest = NEEDS[secret] ?? {};
  const refusal = (says: RegExp) => [{ variable, message: expect.stringMatching(says) }];

  test('beside the variable itself is refused, for one of them would be ignored', () => {
    const errors = refused({ ...rest, [secret]: text, [variable]: file(text) });
    expect(errors).toEqual(refusal(new RegExp(`^${variable} and ${secret} are both set: unset one`)));
  });

  test('names a file that can be used', () => {
    const pipe = join(directory, `pipe-${secret}`);
    execFileSync('/usr/bin/mkfifo', [pipe]);
    const bad: [path: string, says: RegExp][] = [
      [join(directory, 'h0rse'), /does not exist/],
      [directory, /is not a regular file/],
      // It has no writer, so the read must not block.
      [pipe, /is not a regular file/],
      [file(''), /is empty/],
      [file(' \n'), /is empty/],
      [file('h0rse'.repeat(4000)), /is larger than 16384 bytes/],
      [file(`${text}\n${text}\n`), /contains more than one line/],
      [file(`${text}\0`), /contains more than one line/],
      // The secret itself instead of a path.
      [text, /does not exist/],
    ];
    for (const [path, says] of bad) expect(refused({ ...rest, [variable]: path }), path).toEqual(refusal(says));
  });

  test('is checked as the variable is, and as little of it is shown', () => {
    const errors = refused({ ...rest, [variable]: file('h0rse h0rse#') });
    expect(errors.map((error) => error.variable)).toEqual([secret]);
  });

  test('that everybody may read is worth a warning; a misspelt name is refused', () => {
    const warned = (mode: number) =>
      readConfig({ ...rest, [variable]: file(text, mode) }).warnings.map((warning) => warning.variable);
    expect(warned(0o644)).toContain(variable);
    expect(warned(0o640)).not.toContain(variable);
    expect(refused({ [variable.replace('_FILE', '_FILES')]: text })).toMatchObject([
      { message: expect.stringContaining(`did you mean ${variable}?`) },
    ]);
  });
});

test('a file that this user may not read is said to be so', { skip: process.getuid?.() === 0 }, () => {
  expect(refused({ DATABASE_URL_FILE: file('x', 0o000) })).toMatchObject([
    { message: expect.stringContaining('this user may not read') },
  ]);
});
