import { partAccepted } from '../../payments/audit/accepted-problems.ts';
import { BEGINNING, type LogProblem, type LogWalk, walkLog } from '../../payments/audit/walk-log.ts';
import { givingWay } from '../../runtime/give-way.ts';
import { type AuditHead, findAuditHead } from '../../store/access/audit-log.ts';
import type { Sql } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { FieldError } from '../input/field-error.ts';
import type { VerifiedAuditView } from './views.ts';

/** Reads a number and a hash that were kept from an earlier look, `123:ab…`. Errors: `INVALID_ARGUMENT`. */
export function readHead(text: string | undefined): AuditHead | null {
  if (text === undefined) return null;
  const [, seq, hash] = /^([1-9]\d{0,14}):([0-9a-f]{64})$/i.exec(text.trim()) ?? [];
  if (seq !== undefined && hash !== undefined) return { seq: Number(seq), hash: hash.toLowerCase() };
  throw new FieldError('head', 'takes the number and the hash that an earlier run showed, as in 123:4f1c…');
}

/** A number and a hash as they are kept. */
export function writeHead(head: AuditHead | null): string | null {
  return head === null ? null : `${head.seq}:${head.hash}`;
}

/**
 * Walks the audit log from its first entry, and says where one was first changed, left out, put in or made up, but for what somebody has
 * acknowledged. Who holds the master key can make a new log that holds together, and everybody who owns the tables can cut its end off:
 * `kept`, a head that was kept elsewhere, shows both.
 */
export async function verifyAudit(
  { db }: { db: Sql },
  _actor: Actor,
  { kept }: { kept: AuditHead | null },
): Promise<VerifiedAuditView> {
  return verifyLog({ db, sealer: await db.sealer(false), kept });
}

/** The same with the seals of a ledger that the database knows no key of. */
export async function verifyLog({ db, sealer, kept }: LogWalk): Promise<VerifiedAuditView> {
  const accepted: LogProblem[] = [];
  let [place, entries, unsealed] = [BEGINNING, 0, 0];
  const view = () => ({ unsealed, accepted: accepted.map(({ seq, message }) => ({ seq, message })) });
  for await (const page of givingWay(walkLog({ db, sealer, kept }, BEGINNING))) {
    const parted = await partAccepted({ db, sealer }, page.problems);
    accepted.push(...parted.accepted);
    unsealed += page.unsealed;
    const [problem] = parted.others;
    if (problem !== undefined) {
      const { seq, message, passed } = problem;
      const head = await findAuditHead(db);
      return { good: false, entries: entries + passed, head, problem: { seq, message }, ...view() };
    }
    entries += page.entries;
    place = page.place;
  }
  const head = place.seq === 0 || place.hash === null ? null : { seq: place.seq, hash: place.hash };
  return { good: true, entries, head, problem: null, ...view() };
}
