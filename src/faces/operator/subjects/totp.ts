import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { base32nopad } from '@scure/base';
import type { UnixMs } from '../../../core/domain/time.ts';
import {
  decryptCurrent,
  deriveKey,
  type Encrypted,
  encrypt,
  type KeyRing,
  reencrypt,
} from '../../../core/runtime/key-ring.ts';
import { factorColumns, PERSON_SOURCES, type PersonFactors } from '../../../core/store/access/people.ts';
import type { Database, Sql } from '../../../core/store/db/database.ts';
import { findLedgerIdentity } from '../../../core/store/db/ledger-identity.ts';
import { attemptOf, commandOf, rowsOf } from '../../../core/store/db/rows-of.ts';
import { SEALED_PERSON } from '../../../core/store/db/sealed-tables.ts';
import { createSealer } from '../../../core/store/db/seals.ts';
import { listColumns } from '../../../core/store/db/statement.ts';
import { joinEncryption, reencryptInBatches, stopEncryption } from '../../../core/store/outbox/webhook-secrets.ts';

/** RFC 6238 with SHA-1, six digits and 30 s, the only combination that every authenticator app supports. */
const PERIOD_MS = 30_000;
const DIGITS = 6;
/** The secret length that RFC 4226 recommends, which is the output size of SHA-1. */
const TOTP_SECRET_BYTES = 20;

/**
 * Returns the period that the code belongs to: the current one, or the one before or after it, because phone clocks are inaccurate. Returns
 * `null` for any other text. Compares all three in constant time.
 */
export function totpStepOf(secret: Uint8Array, code: string, now: UnixMs): number | null {
  const present = Math.floor(now / PERIOD_MS);
  const given = Buffer.alloc(DIGITS);
  if (TOTP_CODE.test(code)) given.write(code);
  let found: number | null = null;
  for (const step of [present - 1, present, present + 1]) {
    if (timingSafeEqual(given, Buffer.from(totpCode(secret, step)))) found = step;
  }
  return found;
}

/** The format of an authenticator app's code. Anything else is treated as a recovery code. */
const TOTP_CODE = /^\d{6}$/;

/** Calculates a period's code (RFC 4226, section 5.3). */
export function totpCode(secret: Uint8Array, step: number): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const mac = createHmac('sha1', secret).update(counter).digest();
  const offset = (mac.at(-1) ?? 0) & 0xf;
  return String((mac.readUInt32BE(offset) & 0x7fffffff) % 10 ** DIGITS).padStart(DIGITS, '0');
}

/** Returns the secret as text to type, and the link for the QR code that authenticator apps scan. */
export function totpLink(secret: Uint8Array, { login, issuer }: { login: string; issuer: string }) {
  const text = base32nopad.encode(secret);
  const label = [issuer, login].map(encodeURIComponent).join(':');
  return { secret: text, uri: `otpauth://totp/${label}?secret=${text}&issuer=${encodeURIComponent(issuer)}` };
}

/**
 * The TOTP secrets whose codes can redeem an invitation. The first secret is shown; the others belong to earlier master keys. They are
 * derived from the invitation, so nothing is stored before someone has entered a code, and reloading the page shows the same secret.
 */
function totpSecretsOf(ring: KeyRing, token: string): Buffer[] {
  const salt = createHash('sha256').update(token).digest('hex');
  return ring
    .keys()
    .map((key) => deriveKey(key, { purpose: 'quittance totp of an invitation', salt }).subarray(0, TOTP_SECRET_BYTES));
}

/** Returns an invitation's secret, for an authenticator app to scan. */
export function offerTotp(ring: KeyRing, token: string, named: { login: string; issuer: string }) {
  const [secret = Buffer.alloc(0)] = totpSecretsOf(ring, token);
  return totpLink(secret, named);
}

/** Returns the invitation's secret that the code belongs to. */
export function proveTotp(ring: KeyRing, token: string, code: string, now: UnixMs) {
  const proved = totpSecretsOf(ring, token).flatMap((secret) => {
    const step = totpStepOf(secret, code, now);
    return step === null ? [] : [{ secret, step }];
  });
  return proved[0];
}

/** Encrypts a TOTP secret for a person's row. Call it in the transaction that stores the secret. */
export async function sealTotp(tx: Sql, ring: KeyRing, personId: string, secret: Uint8Array): Promise<Encrypted> {
  // Reads the keys under the lock so that no rotation can drop a key that is about to be used.
  await joinEncryption(tx);
  await ring.reload();
  return encrypt(ring, secret, placeOf(personId));
}

/** Decrypts a person's TOTP secret. Returns `null` if the person has none, or if no master key decrypts it. */
async function openTotp(
  ring: KeyRing,
  { id, masterKeyId, totpSealed }: Pick<PersonFactors, 'id' | 'masterKeyId' | 'totpSealed'>,
): Promise<Buffer | null> {
  if (masterKeyId === null || totpSealed === null) return null;
  const opened = await decryptCurrent(ring, { masterKeyId, sealed: totpSealed }, placeOf(id));
  return opened.kind === 'ok' ? opened.plain : null;
}

/** Accepts an app's code once. Returns `false` for any other text. */
export async function takeTotp(
  tx: Sql,
  { keyRing, now }: { keyRing: KeyRing; now(): UnixMs },
  person: PersonFactors,
  code: string,
): Promise<boolean> {
  if (!TOTP_CODE.test(code)) return false;
  const secret = await openTotp(keyRing, person);
  const step = secret && totpStepOf(secret, code, now());
  return step !== null && consumeTotpStep(tx, person.id, step);
}

/** Accepts the code for a time step, unless a code for the same or a later step was already used. Resets the failed attempts. */
const consumeTotpStep = attemptOf(
  'person-take-step',
  `update people set totp_step = $2, misses = 0
   where id = $1 and removed_at is null and totp_sealed is not null and (totp_step is null or totp_step < $2)`,
  (id: string, step: number) => [id, step],
);

/**
 * Encrypts every TOTP secret with the current master key, in batches of 500, and renews the seals of rows whose seal was valid. `lost`
 * holds the people whose secret no key decrypts. Their rows stay as they are, and the owner has to give them a new link.
 */
export async function reencryptTotp(db: Database, ring: KeyRing) {
  const ledger = await findLedgerIdentity(db);
  const sealer = ledger && createSealer(ring, ledger.id);
  const lock = async (tx: Sql, after: string) => {
    await stopEncryption(tx);
    return lockTotpUnderOtherKeys(tx, ring.current().id, after);
  };
  const reencryptRow = async (tx: Sql, { seal, ...row }: Awaited<ReturnType<typeof lock>>[number]) => {
    const { id, masterKeyId, totpSealed } = row;
    const totp = reencrypt(ring, { masterKeyId, sealed: totpSealed }, placeOf(id));
    if (totp === null) return false;
    const isSound = seal !== null && sealer?.open(SEALED_PERSON, seal).problem === null;
    const renewed = isSound ? sealer.seal(SEALED_PERSON, { ...row, totpSealed: totp.sealed }) : null;
    await reencryptTotpRow(tx, id, totp, renewed);
    return true;
  };
  return reencryptInBatches((work) => db.transaction(work), lock, reencryptRow);
}

/** Binds the ciphertext to its row so that it can't be decrypted if it's copied to another person's row. */
function placeOf(personId: string): string {
  return `people.totp_sealed:${personId}`;
}

const sealedTotp = { ...factorColumns, masterKeyId: 'text', totpSealed: 'bytea', seal: 'text?' } as const;

/**
 * Returns the TOTP secrets that are encrypted with other master keys, with the people they belong to. At most 500 after an id are returned,
 * and they are locked until the transaction ends. `seal` is the result of `sealColumn`.
 */
const lockTotpUnderOtherKeys = rowsOf(
  'person-totp-under-other-keys',
  sealedTotp,
  `select ${listColumns(sealedTotp, 'p.', { projects: PERSON_SOURCES.projects, seal: PERSON_SOURCES.isSound })} from people p
   where p.totp_sealed is not null and p.master_key_id <> $1 and p.id > $2 order by p.id limit 500 for update`,
  (keyId: string, after: string) => [keyId, after],
);

/** `mac`: `null` keeps the current one. */
const reencryptTotpRow = commandOf(
  'person-totp-reseal',
  'update people set master_key_id = $2, totp_sealed = $3, mac = coalesce($4, mac) where id = $1',
  (id: string, totp: Encrypted, mac: Buffer | null) => [id, totp.masterKeyId, totp.sealed, mac],
);
