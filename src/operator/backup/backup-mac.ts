import { createHmac, timingSafeEqual } from 'node:crypto';
import { AppError } from '../../domain/errors.ts';
import { say } from '../../domain/message.ts';
import { deriveKey, type KeyRing, type MasterKey } from '../../runtime/key-ring.ts';

/** The end of a backup, and the digest that it was calculated from. */
export type BackupEnding = {
  /** SHA-256 of the file before the trailer. The MAC covers this digest. */
  digest: Buffer;
  /** `null`: the file has only digests, because there was no master key or a former release wrote it. */
  signed: { masterKeyId: string; mac: Buffer } | null;
};

/** `authentic`: made with the master key, and not changed since. `unknown-key`: made with one that is not here, or so it says. */
export type Authenticity =
  | { kind: 'authentic'; masterKeyId: string }
  | { kind: 'tampered'; masterKeyId: string }
  | { kind: 'unknown-key'; masterKeyId: string; hasKeys: boolean }
  | { kind: 'unsigned' };

/** HMAC-SHA-256 over the digest of all bytes before it, under a key only for backups of this ledger. */
export function macOf(key: MasterKey, ledgerId: string | null, digest: Buffer): Buffer {
  const macKey = deriveKey(key, { purpose: 'quittance backup mac 1', salt: ledgerId ?? '' });
  return createHmac('sha256', macKey).update(digest).digest();
}

/** Checks whether the MAC of a backup fits under the master key that the backup names. Any key of the ring will do. */
export function authenticate(
  keyRing: KeyRing | null,
  ledgerId: string | null,
  { digest, signed }: BackupEnding,
): Authenticity {
  if (signed === null) return { kind: 'unsigned' };
  const { masterKeyId, mac } = signed;
  const key = keyRing?.find(masterKeyId);
  if (key === undefined) return { kind: 'unknown-key', masterKeyId, hasKeys: keyRing !== null };
  return { kind: timingSafeEqual(macOf(key, ledgerId, digest), mac) ? 'authentic' : 'tampered', masterKeyId };
}

/** Admits an authentic backup, and with `takesUnauthenticated` one that no key vouches for; never one that is known to be changed. */
export function admitBackup(path: string, found: Authenticity, takesUnauthenticated: boolean): void {
  if (found.kind === 'authentic' || (found.kind !== 'tampered' && takesUnauthenticated)) return;
  if (found.kind === 'tampered') {
    throw new AppError(
      'BACKUP_TAMPERED',
      `${path} was changed by somebody after it was made: its digest fits, and its MAC under the master key ${found.masterKeyId} does not. Nothing was restored from it; take another copy, and ask who could write to this one`,
    );
  }
  throw new AppError(
    'BACKUP_UNAUTHENTICATED',
    say`${path} is not authenticated: ${describeMac(found)}. Nothing was restored from it; if you know where it was kept since it was made, and by whom, take it with ${{ field: 'unauthenticated' }}`,
  );
}

/** Why nobody vouches for a backup, in words that follow a colon. */
export function describeMac(found: Exclude<Authenticity, { kind: 'authentic' | 'tampered' }>): string {
  if (found.kind === 'unsigned') {
    return 'it has no MAC, as without a master key and in releases before there was one, or because somebody took it off';
  }
  const { masterKeyId, hasKeys } = found;
  const made = `it says that it was made under the master key ${masterKeyId}`;
  return hasKeys
    ? `${made}, which is not among those here: put that key behind the present one, or somebody made the file with a key of their own`
    : `${made}, and no master key is at hand: set QUITTANCE_MASTER_KEY, or put the file master-key into the data directory`;
}
