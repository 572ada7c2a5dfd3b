import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { base32nopad } from '@scure/base';
import { NIL_UUID } from '../../domain/ids.ts';
import type { UnixMs } from '../../domain/time.ts';
import { decrypt, deriveKey, type Encrypted, encrypt, type KeyRing } from '../../runtime/key-ring.ts';
import { lockTotpUnderOtherKeys, type PersonFactors, reencryptTotpRow } from '../../store/access/people.ts';
import type { Database, Sql } from '../../store/db/database.ts';
import { findLedgerIdentity } from '../../store/db/ledger-identity.ts';
import type { Sealer } from '../../store/db/seal.ts';
import { SEALED_PERSON } from '../../store/db/sealed-tables.ts';
import { createSealer } from '../../store/db/sealer.ts';
import { joinEncryption, stopEncryption } from '../../store/outbox/webhook-secrets.ts';

/** RFC 6238 with SHA-1, six digits and 30 s: the one combination that every authenticator app knows. */
const PERIOD_MS = 30_000;
const DIGITS = 6;
/** Of SHA-1, as RFC 4226 recommends. */
const TOTP_SECRET_BYTES = 20;

/**
 * The period of a code that fits now, or in the period before or after: clocks of telephones are off. `null` for any other text. Compares all
 * three in constant time.
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

/** What a code of an app looks like; anything else is taken for a recovery code. */
export const TOTP_CODE = /^\d{6}$/;

/** The code of a period (RFC 4226, section 5.3). */
export function totpCode(secret: Uint8Array, step: number): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const mac = createHmac('sha1', secret).update(counter).digest();
  const offset = (mac.at(-1) ?? 0) & 0xf;
  return String((mac.readUInt32BE(offset) & 0x7fffffff) % 10 ** DIGITS).padStart(DIGITS, '0');
}

/** The secret as people type it, and the link that an authenticator app reads from a QR code. */
export function totpLink(secret: Uint8Array, { login, issuer }: { login: string; issuer: string }) {
  const text = base32nopad.encode(secret);
  const label = [issuer, login].map(encodeURIComponent).join(':');
  return { secret: text, uri: `otpauth://totp/${label}?secret=${text}&issuer=${encodeURIComponent(issuer)}` };
}

/**
 * The TOTP secrets that an invitation may be taken up with: the first one is shown, the others were under former master keys. They follow from
 * the invitation, so that nothing is stored until somebody has shown a code, and a page that is loaded again shows the same.
 */
export function totpSecretsOf(ring: KeyRing, token: string): Buffer[] {
  const salt = createHash('sha256').update(token).digest('hex');
  return ring
    .keys()
    .map((key) => deriveKey(key, { purpose: 'quittance totp of an invitation', salt }).subarray(0, TOTP_SECRET_BYTES));
}

/** Seals a TOTP secret for the row of a person, in the transaction that stores it. */
export async function sealTotp(tx: Sql, ring: KeyRing, personId: string, secret: Uint8Array): Promise<Encrypted> {
  // Under the lock and with the keys as they are now, so that no rotation drops a key that this is about to use.
  await joinEncryption(tx);
  await ring.reload();
  return encrypt(ring, secret, placeOf(personId));
}

/** The TOTP secret of a person; `null` if it has none, or no master key opens it. */
export async function openTotp(
  ring: KeyRing,
  { id, masterKeyId, totpSealed }: Pick<PersonFactors, 'id' | 'masterKeyId' | 'totpSealed'>,
): Promise<Buffer | null> {
  if (masterKeyId === null || totpSealed === null) return null;
  const open = () => decrypt(ring, { masterKeyId, sealed: totpSealed }, placeOf(id));
  let opened = open();
  if (opened.kind === 'unknown-key') {
    // A rotation may have changed the file; one that cannot be read now leaves the key unknown.
    await ring.reload().catch(() => undefined);
    opened = open();
  }
  return opened.kind === 'ok' ? opened.plain : null;
}

/**
 * Seals every TOTP secret under the current master key, in batches of 500, and with it each person that is as it was sealed. `lost`: the logins of people whose secret no key opens; they stay
 * as they are, and their owner gives them a new link.
 */
export async function reencryptTotp(db: Database, ring: KeyRing): Promise<{ resealed: number; lost: string[] }> {
  const done = { resealed: 0, lost: [] as string[] };
  const ledger = await findLedgerIdentity(db);
  const sealer = ledger && createSealer(ring, ledger.id);
  for (let after: string | null = NIL_UUID; after !== null; ) {
    const from: string = after;
    const batch = await db.transaction((tx) => reencryptBatch(tx, { ring, sealer }, from));
    done.resealed += batch.resealed;
    done.lost.push(...batch.lost);
    after = batch.last;
  }
  return done;
}

async function reencryptBatch(tx: Sql, { ring, sealer }: { ring: KeyRing; sealer: Sealer | null }, after: string) {
  await stopEncryption(tx);
  const rows = await lockTotpUnderOtherKeys(tx, ring.current().id, after);
  const lost: string[] = [];
  for (const { seal, ...row } of rows) {
    const { id, login, masterKeyId, totpSealed } = row;
    const opened = decrypt(ring, { masterKeyId, sealed: totpSealed }, placeOf(id));
    if (opened.kind !== 'ok') {
      lost.push(login);
      continue;
    }
    const totp = encrypt(ring, opened.plain, placeOf(id));
    const isSound = seal !== null && sealer?.open(SEALED_PERSON, seal).problem === null;
    await reencryptTotpRow(
      tx,
      id,
      totp,
      isSound ? sealer.seal(SEALED_PERSON, { ...row, totpSealed: totp.sealed }) : null,
    );
  }
  return { resealed: rows.length - lost.length, lost, last: rows.at(-1)?.id ?? null };
}

/** Bound to the ciphertext: in the row of another person it does not open. */
function placeOf(personId: string): string {
  return `people.totp_sealed:${personId}`;
}
