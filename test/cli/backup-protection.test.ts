import { spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { copyFile, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { parseMasterKey } from '../../src/core/runtime/key-ring.ts';
import { takeLedger } from '../../src/core/store/db/ledger-identity.ts';
import { readMigrations } from '../../src/core/store/db/migrate.ts';
import { macOf } from '../../src/faces/operator/backup/backup-format.ts';
import { encryptTo } from '../../src/faces/operator/backup/create-backup.ts';
import { type BackupParts, editRows, putTogether, takeApart } from '../support/forge-backup.ts';
import { addressOf, fillLedger, forgetProofs, uuid } from '../support/full-ledger.ts';
import { type LedgerDatabase, newFolder, newLedger } from '../support/ledger-copies.ts';
import { eventually } from '../support/service.ts';
import { longTest } from '../support/some-cases.ts';
import { newDirectory, runCli } from './run-cli.ts';

const [KEY, OTHER_KEY] = [randomBytes(32).toString('base64'), randomBytes(32).toString('base64')];
const LEDGER = uuid(0x77);
/** An address of the ledger, and a thief's. */
const [OURS, THIEFS] = [addressOf(1), addressOf(99)];

async function filled(): Promise<LedgerDatabase> {
  const source = await newLedger();
  await fillLedger(source.client, (await readMigrations()).length);
  await forgetProofs(source.client);
  await takeLedger(source.db, { id: LEDGER, firstIndex: 0 }, 'any');
  return source;
}

const envOf = (
  { connectionString, ownerString }: Pick<LedgerDatabase, 'connectionString' | 'ownerString'>,
  more: NodeJS.ProcessEnv = {},
) => ({
  env: { DATABASE_URL: connectionString, DATABASE_OWNER_URL: ownerString, QUITTANCE_MASTER_KEY: KEY, ...more },
});
const WITHOUT_KEY = { QUITTANCE_MASTER_KEY: undefined };

async function backedUp(options: { env: NodeJS.ProcessEnv }, ...args: string[]): Promise<string> {
  const file = join(await newFolder(), 'ledger.backup');
  expect(await runCli(['backup', '--to', file, '--json', ...args], options)).toMatchObject({ code: 0 });
  return file;
}

/** Whether nothing was written to a database, after a refusal. */
async function isUntouched({ client }: LedgerDatabase): Promise<boolean> {
  return (await client.query('select from projects')).rowCount === 0;
}

test('a backup that was edited, with a digest made to fit, is called tampered and not good, and is not restored', async () => {
  const source = await filled();
  const file = await backedUp(envOf(source));
  const parts = await takeApart(file);
  const forged = `${file}.forged`;
  await putTogether(forged, { ...parts, body: editRows(parts.body, OURS, THIEFS) });
  const verified = await runCli(['backup', '--verify', forged, '--no-chain', '--json'], envOf(source));
  expect(verified.json).toMatchObject({ good: false, authenticity: 'tampered' });
  expect(verified.json.reason).toMatch(/was changed after it was created/);
  expect(verified.code).toBe(1);
  const target = await newLedger();
  for (const allowed of [[], ['--unauthenticated', '--reason', 'in a hurry']]) {
    expect(await runCli(['restore', forged, '--json', ...allowed], envOf(target))).toMatchObject({
      code: 1,
      json: { error: { code: 'BACKUP_TAMPERED' } },
    });
  }
  expect(await isUntouched(target)).toBe(true);

  const good = await runCli(['backup', '--verify', file, '--no-chain', '--json'], envOf(source));
  expect(good).toMatchObject({ code: 0, json: { good: true, authenticity: 'authentic', running: { compared: true } } });
  expect(await runCli(['restore', file, '--json'], envOf(target))).toMatchObject({
    code: 0,
    json: { authenticity: 'authentic' },
  });
});

/** Forgeries by an attacker who knows the format and has another backup but no key, each with the code of its refusal. */
type Forgery = [name: string, code: RegExp, forge: (parts: BackupParts, other: BackupParts) => BackupParts];

const NOTHING = Buffer.alloc(0);
const V1 = Buffer.from('quittance-backup 1\n');
const appended = (body: Buffer, more: Buffer) => Buffer.concat([body, more]);
const thiefs = ({ body }: BackupParts) => editRows(body, OURS, THIEFS);

const FORGERIES: Forgery[] = [
  ['edited rows', /TAMPERED/, (parts) => ({ ...parts, body: thiefs(parts) })],
  ['the trailer of another backup', /TAMPERED/, (parts, other) => ({ ...parts, signature: other.signature })],
  ['the rows of another backup', /TAMPERED/, (parts, other) => ({ ...parts, body: other.body })],
  ['a flipped bit of the MAC', /TAMPERED/, (parts) => ({ ...parts, signature: flipLast(parts.signature) })],
  [
    'a second member of gzip, with a part behind the end',
    /DAMAGED/,
    (parts) => ({ ...parts, body: appended(parts.body, gzipSync(frame('z', { tableCount: 0 }))) }),
  ],
  [
    'a member of gzip with another header before the first',
    /DAMAGED/,
    (parts) => ({ ...parts, body: appended(gzipSync(frame('h', { header: {} })), parts.body) }),
  ],
  ...[null, 'x', [], { ledger: null }].map((header): Forgery => {
    const made = gzipSync(Buffer.concat([frame('h', { header }), frame('z', { tableCount: 0 })]));
    return [`the header ${JSON.stringify(header)}`, /DAMAGED/, (parts) => ({ ...parts, body: made })];
  }),
  [
    'an empty member of gzip, which changes no part',
    /TAMPERED/,
    (parts) => ({ ...parts, body: appended(parts.body, gzipSync(NOTHING)) }),
  ],
  [
    'megabytes behind the compressed part',
    /DAMAGED|TAMPERED/,
    (parts) => ({ ...parts, body: appended(parts.body, randomBytes(4_000_000)) }),
  ],
  ['a compressed part that was cut', /DAMAGED/, (parts) => ({ ...parts, body: parts.body.subarray(0, -40) })],
  [
    'no MAC any more, as if a former release had made it',
    /UNAUTHENTICATED/,
    (parts) => ({ magic: V1, body: thiefs(parts), signature: NOTHING }),
  ],
  ['the former format alone', /UNAUTHENTICATED|DAMAGED/, (parts) => ({ ...parts, magic: V1 })],
  [
    'a key that nobody has',
    /UNAUTHENTICATED/,
    (parts) => ({ ...parts, signature: appended(Buffer.alloc(8), parts.signature.subarray(8)) }),
  ],
  [
    'a MAC under their own key',
    /UNAUTHENTICATED/,
    (parts) => signed({ ...parts, body: thiefs(parts) }, OTHER_KEY, LEDGER),
  ],
  ['a MAC of ours, of another ledger', /TAMPERED/, (parts) => signed(parts, KEY, uuid(0x78))],
];

function frame(type: string, content: object): Buffer {
  const body = Buffer.from(JSON.stringify(content));
  const head = Buffer.alloc(5);
  head.write(type, 'latin1');
  head.writeUInt32BE(body.length, 1);
  return appended(head, body);
}

function flipLast(bytes: Buffer): Buffer {
  const flipped = Buffer.from(bytes);
  flipped.writeUInt8(flipped.readUInt8(flipped.length - 1) ^ 1, flipped.length - 1);
  return flipped;
}

function signed(parts: BackupParts, masterKey: string, ledgerId: string): BackupParts {
  const key = parseMasterKey(masterKey);
  if (key === null) throw new Error('a key has 32 bytes');
  const digest = createHash('sha256').update(parts.magic).update(parts.body).digest();
  return { ...parts, signature: appended(Buffer.from(key.id, 'hex'), macOf(key, ledgerId, digest)) };
}

/** Creates two backups of the same ledger. */
async function backedUpTwice() {
  const source = await filled();
  const file = await backedUp(envOf(source));
  await source.client.query(`update projects set name = 'renamed'`);
  return { file, other: await backedUp(envOf(source)) };
}

test('whatever else is done to a backup without its key is refused, though the digest fits', async () => {
  const { file, other } = await backedUpTwice();
  const [parts, others] = [await takeApart(file), await takeApart(other)];
  const target = await newLedger();
  const forged = `${file}.forged`;
  const restore = async () => (await runCli(['restore', forged, '--json'], envOf(target))).json;
  for (const [name, code, forge] of FORGERIES) {
    await putTogether(forged, forge(parts, others));
    expect((await restore()).error?.code, name).toMatch(code);
  }
  const bytes = await readFile(file);
  for (const changed of [bytes.subarray(0, -1), bytes.subarray(0, -72), appended(bytes, Buffer.from('x'))]) {
    await writeFile(forged, changed);
    expect((await restore()).error?.code).toBe('BACKUP_DAMAGED');
  }
  expect(await isUntouched(target)).toBe(true);
  // The test's own tools are correct: parts put together unchanged are accepted.
  await putTogether(forged, signed(parts, KEY, LEDGER));
  expect(await restore()).toMatchObject({ authenticity: 'authentic' });
});

test('a backup that is replaced between the two readings of a restore leaves the database empty', async () => {
  const { file, other } = await backedUpTwice();
  const target = await newLedger();
  // The restore has read the file once and is waiting for the migration lock.
  await target.client.query(`begin; select pg_advisory_xact_lock(${0x71756974})`);
  const restoring = runCli(['restore', file, '--json'], envOf(target));
  const watching = await newLedger();
  await eventually(
    async () => {
      const text = `select from pg_stat_activity where datname = '${target.connection.database}'
        and application_name = 'quittance backup' and wait_event_type = 'Lock'`;
      return (await watching.client.query(text)).rowCount;
    },
    (count) => count === 1,
  );
  await copyFile(other, file);
  await target.client.query('commit');
  expect((await restoring).json.error).toMatchObject({
    code: 'BACKUP_DAMAGED',
    message: expect.stringContaining('the file changed while Quittance read it'),
  });
  expect(await isUntouched(target)).toBe(true);
});

longTest(
  'a backup without a master key says that nobody vouches for it, and is taken with a reason that an alarm tells',
  async () => {
    const source = await filled();
    const file = join(await newFolder(), 'ledger.backup');
    const made = await runCli(['backup', '--to', file], envOf(source, WITHOUT_KEY));
    expect(made.stdout).toMatch(/authenticated +NO: no master key is configured/);
    for (const more of [{}, WITHOUT_KEY]) {
      const verified = await runCli(['backup', '--verify', file, '--json'], envOf(source, more));
      expect(verified.json).toMatchObject({ good: false, authenticity: 'not-authenticated' });
      expect(verified.json.reason).toMatch(/is not authenticated: it has no MAC/);
      expect(verified.code).toBe(1);
    }
    const examined = ['backup', '--verify', file, '--unauthenticated', '--no-chain', '--json'];
    expect(await runCli(examined, envOf(source))).toMatchObject({
      code: 0,
      json: { good: true, authenticity: 'not-authenticated' },
    });
    const target = await newLedger();
    const restore = (...args: string[]) => runCli(['restore', file, '--json', ...args], envOf(target));
    expect(await restore()).toMatchObject({ code: 1, json: { error: { code: 'BACKUP_UNAUTHENTICATED' } } });
    expect(await restore('--unauthenticated')).toMatchObject({ code: 2 });
    expect(await isUntouched(target)).toBe(true);
    const reason = 'it never left the safe';
    expect(await restore('--unauthenticated', '--reason', reason, '--by', 'Ada')).toMatchObject({
      code: 0,
      json: { authenticity: 'unsigned' },
    });
    const { rows } = await target.client.query(`select detail from alarms where kind = 'database-restored'
    and resolved_at is null`);
    expect(rows.at(-1)?.detail).toContain(`(accepted by Ada: ${reason})`);
  },
);

test('a final backup that nobody vouches for leaves an alarm too', async () => {
  const source = await filled();
  const file = join(await newFolder(), 'final.backup');
  await runCli(['backup', '--final', '--to', file], envOf(source, WITHOUT_KEY));
  const target = await newLedger();
  const args = ['restore', file, '--unauthenticated', '--reason', 'moved by hand', '--json'];
  expect(await runCli(args, envOf(target))).toMatchObject({ code: 0, json: { final: true, barredAddresses: 0 } });
  const { rows } = await target.client.query(`select detail from alarms where detail like '%moved by hand%'`);
  expect(rows[0]?.detail).toMatch(/compare its addresses with your wallet/);
});

longTest(
  'a backup is known by each key that opens, and without its key nobody can tell whether it is ours',
  async () => {
    const source = await filled();
    const file = await backedUp(envOf(source));
    const verify = async (more: NodeJS.ProcessEnv) =>
      (await runCli(['backup', '--verify', file, '--no-chain', '--json'], envOf(source, more))).json;
    expect(await verify({ QUITTANCE_MASTER_KEY: `${OTHER_KEY},${KEY}` })).toMatchObject({ authenticity: 'authentic' });
    const other = await verify({ QUITTANCE_MASTER_KEY: OTHER_KEY });
    expect(other).toMatchObject({ good: false, authenticity: 'not-authenticated' });
    expect(other.reason).toMatch(/which is not configured here/);
    const none = await verify(WITHOUT_KEY);
    expect(none).toMatchObject({ good: false, authenticity: 'not-authenticated' });
    expect(none.reason).toMatch(/no master key is configured/);
  },
);

describe('an encrypted backup', () => {
  async function newPair(): Promise<{ identity: string; recipient: string }> {
    const identity = join(newDirectory(), 'backup.key');
    const { code, json } = await runCli(['backup', 'keygen', identity, '--json']);
    expect(code).toBe(0);
    return { identity, recipient: json.recipient };
  }

  test('is made without asking where a recipient is set, and is opened by the secret key alone', async () => {
    const { identity, recipient } = await newPair();
    expect((await stat(identity)).mode & 0o777).toBe(0o600);
    const source = await filled();
    const { env } = envOf(source, { QUITTANCE_BACKUP_RECIPIENT: recipient });
    const file = await backedUp({ env });
    const bytes = (await readFile(file)).toString('latin1');
    expect(bytes.startsWith('age-encryption.org/v1\n')).toBe(true);
    expect(bytes).not.toContain('quittance-backup');

    const verify = (...args: string[]) =>
      runCli(['backup', '--verify', file, '--no-chain', '--json', ...args], { env });
    const unread = await verify();
    expect(unread).toMatchObject({ code: 1, json: { good: false, authenticity: 'not-read', recipients: 1 } });
    expect(unread.json.reason).toMatch(/is encrypted to 1 key\(s\).*--identity/);
    const good = { code: 0, json: { good: true, authenticity: 'authentic' } };
    expect(await verify('--identity', identity)).toMatchObject(good);

    const target = await newLedger();
    const restore = (...args: string[]) => runCli(['restore', file, '--json', ...args], envOf(target));
    const stranger = await newPair();
    for (const args of [[], ['--identity', stranger.identity]]) {
      expect(await restore(...args)).toMatchObject({ code: 1, json: { error: { code: 'BACKUP_ENCRYPTED' } } });
    }
    expect(await restore('--identity', identity)).toMatchObject({ code: 0, json: { authenticity: 'authentic' } });
    expect((await target.client.query('select from invoices')).rowCount).toBe(6);
  });

  test('is no less refused when it was forged, or when any of it is changed or missing', async () => {
    const [{ identity, recipient }, target] = [await newPair(), await newLedger()];
    const source = await filled();
    const plain = await backedUp(envOf(source));
    const parts = await takeApart(plain);
    const forged = `${plain}.forged`;
    const restore = async (path: string) =>
      (await runCli(['restore', path, '--identity', identity, '--json'], envOf(target))).json.error?.code;
    // Anyone can encrypt to a public key.
    const encrypt = async (from: string) => {
      await writeFile(forged, encryptTo([recipient], createReadStream(from)));
      return restore(forged);
    };
    await putTogether(`${plain}.edited`, { ...parts, body: thiefs(parts) });
    expect(await encrypt(`${plain}.edited`)).toBe('BACKUP_TAMPERED');
    await putTogether(`${plain}.former`, { magic: V1, body: thiefs(parts), signature: NOTHING });
    expect(await encrypt(`${plain}.former`)).toBe('BACKUP_UNAUTHENTICATED');
    expect(await encrypt(identity)).toBe('INVALID_ARGUMENT');

    const file = await backedUp(envOf(source), '--recipient', recipient);
    const bytes = await readFile(file);
    const ends = [bytes.subarray(0, -1), bytes.subarray(0, 60), appended(bytes, bytes.subarray(-100))];
    const flips = [30, 120, 220, bytes.length >> 1, bytes.length - 1].map((at) => {
      const copy = Buffer.from(bytes);
      copy.writeUInt8(copy.readUInt8(at) ^ 1, at);
      return copy;
    });
    for (const changed of [...ends, ...flips]) {
      await writeFile(forged, changed);
      // A header that names another key may also come from someone else's file.
      expect(await restore(forged)).toMatch(/BACKUP_(DAMAGED|ENCRYPTED)/);
    }
    expect(await isUntouched(target)).toBe(true);
    expect(await restore(file)).toBeUndefined();
  });

  test('has several recipients, of whom each opens it; one that is none is refused before a ledger is closed', async () => {
    const [one, two] = [await newPair(), await newPair()];
    const source = await filled();
    const file = await backedUp(envOf(source), '--recipient', one.recipient, '--recipient', two.recipient);
    for (const { identity } of [one, two]) {
      const target = await newLedger();
      expect(await runCli(['restore', file, '--identity', identity], envOf(target))).toMatchObject({ code: 0 });
    }
    const wrong = `${one.recipient.slice(0, -1)}${one.recipient.endsWith('q') ? 'p' : 'q'}`;
    expect(await runCli(['backup', '--final', '--recipient', wrong, '--json'], envOf(source))).toMatchObject({
      code: 2,
      json: { error: { code: 'CONFIG_INVALID' } },
    });
    const { rows } = await source.client.query('select closed_at from ledger_identity');
    expect(rows).toEqual([{ closed_at: null }]);
  });

  test('keygen replaces no file, and no message shows a secret key', async () => {
    const { identity } = await newPair();
    expect(await runCli(['backup', 'keygen', identity])).toMatchObject({ code: 4 });
    const secret = (await readFile(identity, 'utf8')).split('\n')[2] ?? '';
    const source = await filled();
    const file = await backedUp(envOf(source));
    await writeFile(`${identity}.wrong`, secret.slice(0, -1));
    for (const given of [secret, `${identity}.wrong`]) {
      const { code, stdout, stderr } = await runCli(['restore', file, '--identity', given], envOf(source));
      expect(code).toBe(2);
      expect(stdout + stderr).not.toContain(secret.slice(20, 50));
    }
    const { env } = envOf(source, { QUITTANCE_BACKUP_RECIPIENT: secret });
    const { code, stderr } = await runCli(['backup'], { env });
    expect(code).toBe(2);
    expect(stderr).toMatch(/QUITTANCE_BACKUP_RECIPIENT.*is a secret key/);
    expect(stderr).not.toContain(secret.slice(20, 50));
  });

  test.skipIf(spawnSync('age', ['--version']).error !== undefined)(
    'is one of age: its own tool opens ours, and ours opens what it encrypted',
    async () => {
      const folder = newDirectory();
      const theirs = join(folder, 'theirs.key');
      const keygen = spawnSync('age-keygen', ['-o', theirs], { encoding: 'utf8' });
      const recipient = /age1[0-9a-z]+/.exec(keygen.stderr)?.[0] ?? '';
      const ours = await newPair();
      const source = await filled();
      const file = await backedUp(envOf(source), '--recipient', `${recipient},${ours.recipient}`);
      for (const [index, identity] of [theirs, ours.identity].entries()) {
        const plain = join(folder, `${index}.plain`);
        expect(spawnSync('age', ['-d', '-i', identity, '-o', plain, file])).toMatchObject({ status: 0 });
        const again = join(folder, `${index}.age`);
        expect(spawnSync('age', ['-r', recipient, '-o', again, plain])).toMatchObject({ status: 0 });
        const target = await newLedger();
        for (const args of [[plain], [again, '--identity', theirs]].slice(index)) {
          const restored = await runCli(['restore', ...args, '--json'], envOf(target));
          expect(restored).toMatchObject({ code: 0, json: { authenticity: 'authentic' } });
          await target.client.query('drop schema public cascade; create schema public');
        }
      }
    },
  );
});
