import { createHash } from 'node:crypto';
import { type AuditHead, type AuditLink, findAuditHead, readAuditLinks } from '../../store/access/audit-log.ts';
import type { Database, Sql } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { FieldError } from '../input/field-error.ts';
import type { VerifiedAuditView } from './views.ts';

const PAGE = 1000;
const FIRST = '0'.repeat(64);

/** Reads a number and a hash that were kept from an earlier look, `123:ab…`. Errors: `INVALID_ARGUMENT`. */
export function readHead(text: string | undefined): AuditHead | null {
  if (text === undefined) return null;
  const [, seq, hash] = /^([1-9]\d{0,14}):([0-9a-f]{64})$/i.exec(text.trim()) ?? [];
  if (seq !== undefined && hash !== undefined) return { seq: Number(seq), hash: hash.toLowerCase() };
  throw new FieldError('head', 'takes the number and the hash that an earlier run showed, as in 123:4f1c…');
}

/**
 * Walks the audit log from its first entry, and says where one was first changed, left out or put in. Who could rewrite the whole log can
 * make a new one that holds together: `kept`, a head that was kept elsewhere, shows that.
 */
export async function verifyAudit(
  { db }: { db: Database },
  _actor: Actor,
  { kept }: { kept: AuditHead | null },
): Promise<VerifiedAuditView> {
  return db.snapshot(async (tx) => {
    const head = await findAuditHead(tx);
    const { entries, problem } = await walk(tx, kept);
    const lost = kept !== null && kept.seq > (head?.seq ?? 0) ? cut(kept, head) : null;
    return { good: problem === null && lost === null, entries, head, problem: problem ?? lost };
  });
}

function cut(kept: AuditHead, head: AuditHead | null): { seq: number; message: string } {
  const end = head === null ? 'the log is empty' : `the log ends at ${head.seq}`;
  return { seq: kept.seq, message: `entry ${kept.seq} was kept from an earlier look, and ${end}: its end was cut off` };
}

async function walk(tx: Sql, kept: AuditHead | null) {
  let [last, hash] = [0, FIRST];
  let entries = 0;
  for (;;) {
    const links = await readAuditLinks(tx, last, PAGE);
    for (const link of links) {
      const message = problemOf(link, { seq: last, hash }, kept);
      if (message !== null) return { entries, problem: { seq: link.seq, message } };
      [last, hash] = [link.seq, link.hash];
      entries += 1;
    }
    if (links.length < PAGE) return { entries, problem: null };
  }
}

function problemOf(link: AuditLink, before: AuditHead, kept: AuditHead | null): string | null {
  const { seq, hash } = link;
  if (seq !== before.seq + 1) return `entry ${before.seq + 1} is missing: somebody left it out`;
  if (hash !== chainedHash(link, before.hash)) {
    return `entry ${seq} is not as it was written, or the one before it is not: somebody changed it`;
  }
  if (kept?.seq === seq && kept.hash !== hash) {
    return `entry ${seq} had another hash when it was looked at before: the log was rewritten, at ${seq} or before`;
  }
  return null;
}

/** SHA-256 of the hash before and of the fields: each as the count of its bytes, ":" and its bytes, or "-" for none. */
function chainedHash({ fields }: AuditLink, before: string): string {
  const content = fields.map((field) => {
    if (!field.startsWith('+')) return '-';
    const value = field.slice(1);
    return `${Buffer.byteLength(value)}:${value}`;
  });
  return createHash('sha256').update(Buffer.from(before, 'hex')).update(content.join('')).digest('hex');
}
