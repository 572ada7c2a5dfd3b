import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { createMasterKey, type KeyRing } from './key-ring.ts';
import { keyFilePath, openKeyRing, requireKeyRing, writeKeyFile } from './open-key-ring.ts';

const IS_ROOT = process.getuid?.() === 0;
const NOBODY = 65_534;

let dataDir: string;
let path: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'quittance-keys-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  path = keyFilePath(dataDir);
});

function settings(masterKeys: string[] | null = null, databaseUrl: string | null = null) {
  return { masterKeys, databaseUrl, dataDir };
}

async function opened(): Promise<KeyRing> {
  return requireKeyRing(settings());
}

function place(text: string | Buffer, mode = 0o600): void {
  writeFileSync(path, text, { mode });
  chmodSync(path, mode);
}

const ids = (ring: KeyRing) => ring.keys().map(({ id }) => id);
const [older, newer] = [createMasterKey(), createMasterKey()];
const line = ({ bytes }: { bytes: Buffer }) => bytes.toString('base64');

describe('the keys of a process', () => {
  test('come from the setting where there is one, and no file is made', async () => {
    const ring = await openKeyRing(settings([line(newer), older.bytes.toString('hex')], 'postgres://db/x'));
    expect(ring?.current()).toEqual(newer);
    expect(ring?.find(older.id)).toEqual(older);
    expect(ring?.source).toEqual({ kind: 'setting' });
    expect(readdirSync(dataDir)).toEqual([]);
  });

  test('are needed from the setting with a database elsewhere, which is said with the fix', async () => {
    expect(await openKeyRing(settings(null, 'postgres://db/x'))).toBeNull();
    await expect(requireKeyRing(settings(null, 'postgres://db/x'))).rejects.toMatchObject({
      name: 'KeyRingError',
      code: 'CONFIG_INVALID',
      message: expect.stringMatching(/QUITTANCE_MASTER_KEY is not set.*openssl rand -base64 32/),
    });
    expect(readdirSync(dataDir)).toEqual([]);
  });
});

describe('the key file', () => {
  test('is made once, by any number at the same time, for its user only, and nothing is left beside it', async () => {
    const rings = await Promise.all(Array.from({ length: 8 }, opened));
    expect(new Set(rings.flatMap(ids)).size).toBe(1);
    expect(ids(await opened())).toEqual(rings.slice(0, 1).flatMap(ids));
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(dataDir)).toEqual(['master-key']);
    expect(readFileSync(path, 'utf8')).toMatch(/^[A-Za-z0-9+/]{43}=\n$/);
  });

  test('is not made where it may not be', async () => {
    expect(await openKeyRing(settings(), { mayCreate: false })).toBeNull();
    expect(existsSync(path)).toBe(false);
  });

  test('holds a key a line, of which the first seals; spaces, empty lines and carriage returns do not matter', async () => {
    place(`\r\n  ${line(newer)}  \r\n\t${older.bytes.toString('hex')}\r\n\r\n`);
    expect(ids(await opened())).toEqual([newer.id, older.id]);
  });

  test.each([
    ['is empty', ''],
    ['holds blank lines only', ' \n\n'],
    ['was cut off', line(older).slice(0, 20)],
    ['was cut off in its second line', `${line(newer)}\n${line(older).slice(0, 20)}`],
    ['holds more than keys', `# keys\n${line(older)}\n`],
    ['holds bytes', older.bytes],
    ['is longer than any number of keys that makes sense', `${line(older)}\n`.repeat(100)],
  ])('that %s is refused, as it is, without its content in the message', async (_, content) => {
    place(content);
    const error = await opened().catch((cause: Error) => cause);
    expect(error).toMatchObject({ code: 'KEY_FILE_INVALID', message: expect.stringContaining('from a backup') });
    expect(String(error)).not.toContain(line(older).slice(0, 12));
    expect(readFileSync(path)).toEqual(Buffer.from(content));
  });

  test('that others can read is closed to them, which is told', async () => {
    place(`${line(older)}\n`, 0o644);
    const warnings: string[] = [];
    const ring = await openKeyRing(settings(), { warn: (message) => warnings.push(message) });
    expect(ring?.current()).toEqual(older);
    expect(warnings).toEqual([expect.stringMatching(/had mode 0644.*changed the mode to 0600/)]);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test('is not followed where it is a symbolic link, dangling or not', async () => {
    const elsewhere = join(dataDir, 'elsewhere');
    symlinkSync(elsewhere, path);
    await expect(opened()).rejects.toThrow('is a symbolic link');
    expect(existsSync(elsewhere)).toBe(false);
    writeFileSync(elsewhere, `${line(older)}\n`, { mode: 0o600 });
    await expect(opened()).rejects.toThrow('is a symbolic link');
  });

  test('is not a directory', async () => {
    mkdirSync(path);
    await expect(opened()).rejects.toThrow('is not a regular file');
  });

  test('is read again on demand, and keys that it held before still open', async () => {
    place(`${line(older)}\n`);
    const ring = await opened();
    await writeKeyFile(path, [newer, older]);
    expect(ring.current()).toEqual(older);
    await ring.reload();
    expect(ids(ring)).toEqual([newer.id, older.id]);
    await writeKeyFile(path, [newer]);
    await ring.reload();
    expect(ids(ring)).toEqual([newer.id]);
    expect(ring.find(older.id)).toEqual(older);
    expect((await opened()).find(older.id)).toBeUndefined();
    rmSync(path);
    await expect(ring.reload()).rejects.toThrow('is missing: restore it');
    expect(existsSync(path)).toBe(false);
  });

  test('is changed as a whole, whatever a killed process left', async () => {
    place(`${line(older)}\n`);
    symlinkSync(join(dataDir, 'elsewhere'), `${path}.draft`);
    await writeKeyFile(path, [newer, older]);
    expect(readFileSync(path, 'utf8')).toBe(`${line(newer)}\n${line(older)}\n`);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(dataDir)).toEqual(['master-key']);
  });

  test('cannot be made below something that is not a directory, which is said', async () => {
    const file = join(dataDir, 'file');
    writeFileSync(file, '');
    await expect(requireKeyRing({ ...settings(), dataDir: join(file, 'data') })).rejects.toThrow(/file/);
  });
});

describe.runIf(IS_ROOT)('the key file of root', () => {
  test('belongs to the owner of the data directory, whose service must read it', async () => {
    chownSync(dataDir, NOBODY, NOBODY);
    await opened();
    expect(statSync(path)).toMatchObject({ uid: NOBODY, gid: NOBODY });
    expect(statSync(path).mode & 0o777).toBe(0o600);
    await opened();
  });

  test('is refused where it belongs to anybody else', async () => {
    place(`${line(older)}\n`);
    chownSync(path, NOBODY, NOBODY);
    await expect(opened()).rejects.toMatchObject({
      code: 'KEY_FILE_INVALID',
      message: expect.stringMatching(/belongs to uid 65534.*chown 0 /),
    });
  });
});
