import type { UnixMs } from '../../domain/time.ts';
import { answerOf, commandOf, rowOf } from '../db/rows-of.ts';
import { group, listColumns, text } from '../db/statement.ts';
import { PERSON_SHAPE, PERSON_SOURCES } from './people.ts';

/** Ends the invitation of a person that is open, if there is one. */
export const endInvitations = commandOf(
  'invitation-end',
  'update invitations set ended_at = $2 where person_id = $1 and ended_at is null',
  (personId: string, now: UnixMs) => [personId, new Date(now)],
);

/** The one before must have ended. */
export const insertInvitation = commandOf(
  'invitation-insert',
  'insert into invitations (sha256, person_id, kind, created_at, expires_at) values ($1, $2, $3, $4, $5)',
  (invitation: { sha256: Buffer; personId: string; kind: 'invite' | 'reset'; now: UnixMs; expiresAt: UnixMs }) => {
    const { sha256, personId, kind, now, expiresAt } = invitation;
    return [sha256, personId, kind, new Date(now), new Date(expiresAt)];
  },
);

const open = { kind: text<'invite' | 'reset'>(), expiresAt: 'timestamptz', person: group(PERSON_SHAPE) } as const;

/** An invitation that can be taken up now, with the person. */
export const findInvitation = rowOf(
  'invitation-find',
  open,
  `select ${listColumns(open, 'i.', { person: PERSON_SOURCES })} from invitations i join people p on p.id = i.person_id
   where i.sha256 = $1 and i.ended_at is null and i.expires_at > $2 and p.removed_at is null`,
  (sha256: Buffer, now: UnixMs) => [sha256, new Date(now)],
);

/** Takes an invitation up. `false`: somebody has, or it has ended. */
export const takeInvitation = answerOf(
  'invitation-take',
  { personId: 'uuid' },
  'update invitations set ended_at = $2 where sha256 = $1 and ended_at is null and expires_at > $2 returning person_id',
  (sha256: Buffer, now: UnixMs) => [sha256, new Date(now)],
  (rows) => rows.length > 0,
);

/** Gives a person these recovery codes, by their SHA-256. */
export const insertRecoveryCodes = commandOf(
  'recovery-code-insert',
  `insert into recovery_codes (sha256, person_id, created_at) select decode(code, 'hex'), $1, $3 from unnest($2::text[]) as _ (code)`,
  (personId: string, codes: readonly Buffer[], now: UnixMs) => [
    ...[personId, codes.map((code) => code.toString('hex')), new Date(now)],
  ],
);

/** Whether a person has this code, and has not used it. */
export const hasRecoveryCode = answerOf(
  'recovery-code-find',
  { there: 'bool' },
  'select true as there from recovery_codes where sha256 = $1 and person_id = $2 and ended_at is null',
  (sha256: Buffer, personId: string) => [sha256, personId],
  (rows) => rows.length > 0,
);

/** Uses a recovery code up. `false`: the person has none like it. */
export const takeRecoveryCode = answerOf(
  'recovery-code-take',
  { personId: 'uuid' },
  `update recovery_codes set ended_at = $3 where sha256 = $1 and person_id = $2 and ended_at is null returning person_id`,
  (sha256: Buffer, personId: string, now: UnixMs) => [sha256, personId, new Date(now)],
  (rows) => rows.length > 0,
);
