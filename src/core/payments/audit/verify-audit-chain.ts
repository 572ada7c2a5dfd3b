import { createHash } from 'node:crypto';
import { NETWORKS } from '../../domain/network.ts';
import { type AuditHead, type AuditLink, readAcknowledged, readAuditLinks } from '../../store/access/audit-log.ts';
import type { Sql } from '../../store/db/database.ts';
import type { OpenedSeal, Sealer, SealProblem } from '../../store/db/seal.ts';
import { SEALED_ACTION } from '../../store/db/sealed-tables.ts';

/** Checking a page blocks the rest of the process for a few milliseconds. */
const PAGE = 250;

/**
 * The position that a check has reached. `hash` is the hash of entry `seq`, or `null` if the hash isn't known. `isSealed` means that at
 * least one entry up to that point has a seal.
 */
export type Place = { seq: number; hash: string | null; isSealed: boolean };

export const BEGINNING: Place = { seq: 0, hash: '0'.repeat(64), isSealed: false };

/**
 * A place where someone tampered with the log. `name` identifies the entry and its current content, so that another change to the same
 * entry gets a different name. `passed` is the number of entries that precede this one on the page.
 */
export type LogProblem = { seq: number; name: string; message: string; passed: number };

/** `entries`: the number of entries on the page. `unsealed`: how many entries precede the first sealed one. */
export type VerifiedPage = { place: Place; entries: number; unsealed: number; problems: LogProblem[] };

/** `kept` is a head from an earlier check. Without a sealer, only the hashes are checked. */
export type ChainVerification = { db: Sql; sealer: Sealer | null; kept: AuditHead | null };

/**
 * Checks the audit log from a position to its end, a few hundred entries at a time. Finds entries that were changed, removed, inserted or
 * forged.
 */
export async function* walkLog({ db, sealer, kept }: ChainVerification, from: Place): AsyncGenerator<VerifiedPage> {
  let place = from;
  for (;;) {
    const links = await readAuditLinks(db, place.seq, PAGE);
    const seals = await openSeals(sealer, links);
    const page: VerifiedPage = { place, entries: links.length, unsealed: 0, problems: [] };
    for (const [index, link] of links.entries()) {
      const [before, seal] = [page.place, seals[index] ?? null];
      const message = problemOf(link, before, kept) ?? (seal === null ? null : sealProblemOf(link, before, seal));
      if (message !== null) page.problems.push({ seq: link.seq, name: nameOf(link, before), message, passed: index });
      if (seal === 'unsealed' && !before.isSealed) page.unsealed += 1;
      const isSealed = before.isSealed || (sealer !== null && seal !== 'unsealed');
      page.place = { seq: link.seq, hash: link.hash, isSealed };
    }
    place = page.place;
    const cut = links.length < PAGE && kept !== null && kept.seq > place.seq ? cutOff(kept, place) : null;
    if (cut !== null) page.problems.push({ ...cut, passed: links.length });
    yield page;
    if (links.length < PAGE) return;
  }
}

/** Returns the problems with the seals. If a key is unknown, reloads the keys first, because another process may have created one. */
async function openSeals(sealer: Sealer | null, links: readonly AuditLink[]): Promise<OpenedSeal['problem'][]> {
  if (sealer === null) return [];
  const open = () => links.map(({ seal }) => (seal === null ? 'unsealed' : sealer.open(SEALED_ACTION, seal).problem));
  const found = open();
  if (!found.includes('unknown-key')) return found;
  await sealer.reload();
  return open();
}

function problemOf({ seq, hash, fields }: AuditLink, before: Place, kept: AuditHead | null): string | null {
  if (seq !== before.seq + 1) return `entry ${before.seq + 1} is missing: it was removed`;
  if (kept?.seq === seq && kept.hash !== hash) {
    return `entry ${seq} had a different hash in an earlier check: the log was rewritten at or before entry ${seq}`;
  }
  if (before.hash !== null && hash !== chainedHash(fields, before.hash)) {
    return `entry ${seq} or the previous entry was modified after it was written`;
  }
  return null;
}

/** Unsealed entries at the start of the log were written before seals existed. */
function sealProblemOf({ seq }: AuditLink, { isSealed }: Place, kind: SealProblem['kind']): string | null {
  if (kind === 'changed') return `the seal of entry ${seq} is wrong: the entry was forged or changed`;
  if (kind === 'unknown-key') return `entry ${seq} was sealed with a master key that is not configured`;
  if (!isSealed) return null;
  return `entry ${seq} has no seal, but an earlier one has: the entry was forged, or a process without the master key or from an older release wrote it`;
}

function cutOff(kept: AuditHead, { seq, hash }: Place): Omit<LogProblem, 'passed'> {
  const end = hash === null ? 'it is missing now' : seq === 0 ? 'the log is empty' : `the log ends at entry ${seq}`;
  return {
    seq: kept.seq,
    name: `end ${kept.seq} ${kept.hash.slice(0, 16)}`,
    message: `entry ${kept.seq} existed in an earlier check, but ${end}: the end of the log was removed`,
  };
}

/** The name stays the same if only the seal is renewed. */
function nameOf({ seq, fields, hash }: AuditLink, before: Place): string {
  const found = createHash('sha256').update(JSON.stringify([before.seq, fields, hash]));
  return `entry ${seq} ${found.digest('hex').slice(0, 16)}`;
}

/**
 * Returns the SHA-256 of the previous hash and the fields. Each field is hashed as its byte count, ":" and its bytes, or as "-" if the
 * field is absent.
 */
function chainedHash(fields: AuditLink['fields'], before: string): string {
  const content = fields.map((field) => {
    if (!field.startsWith('+')) return '-';
    const value = field.slice(1);
    return `${Buffer.byteLength(value)}:${value}`;
  });
  return createHash('sha256').update(Buffer.from(before, 'hex')).update(content.join('')).digest('hex');
}

/**
 * Separates the audit log problems that an operator has acknowledged from all others. Acknowledgements are log entries. In a ledger with
 * seals, only sealed entries count, so an attacker who changes the log can't acknowledge the change.
 */
export async function partAccepted(
  { db, sealer }: { db: Sql; sealer: Sealer | null },
  problems: readonly LogProblem[],
): Promise<{ accepted: LogProblem[]; others: LogProblem[] }> {
  if (problems.length === 0) return { accepted: [], others: [] };
  const entries = (await readAcknowledged(db, NETWORKS)).filter(
    ({ seal }) => sealer === null || (seal !== null && sealer.open(SEALED_ACTION, seal).problem === null),
  );
  const names = new Set(entries.flatMap(({ detail }) => detail.accepted ?? []));
  const accepted = problems.filter(({ name }) => names.has(name));
  return { accepted, others: problems.filter(({ name }) => !names.has(name)) };
}
