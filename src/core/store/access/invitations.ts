import type { UnixMs } from '../../domain/time.ts';
import type { Sql } from '../db/database.ts';
import { answerOf, attemptOf, commandOf } from '../db/rows-of.ts';
import { hexSeal, sealColumn, sealOf } from '../db/seal.ts';
import { SEALED_INVITATION, SEALED_RECOVERY_CODE } from '../db/sealed-tables.ts';
import { group, isAsSealed, listColumns, text } from '../db/statement.ts';
import { PERSON_SHAPE, PERSON_SOURCES } from './people.ts';

/** Ends a person's open invitation, if there is one. */
export const endInvitations = commandOf(
  'invitation-end',
  'update invitations set ended_at = $2, mac = null where person_id = $1 and ended_at is null',
  (personId: string, now: UnixMs) => [personId, new Date(now)],
);

/** Ends everyone's open invitations. */
export const endAllInvitations = commandOf(
  'invitation-end-everyone',
  'update invitations set ended_at = $1, mac = null where ended_at is null',
  (now: UnixMs) => [new Date(now)],
);

/** Stores an invitation. The person's previous invitation must have ended. */
export const insertInvitation = commandOf(
  'invitation-insert',
  'insert into invitations (sha256, person_id, kind, created_at, expires_at, mac) values ($1, $2, $3, $4, $5, $6)',
  (invitation: { sha256: Buffer; personId: string; kind: 'invite' | 'reset'; now: UnixMs; expiresAt: UnixMs }) => {
    const { sha256, personId, kind, now, expiresAt } = invitation;
    return [sha256, personId, kind, new Date(now), new Date(expiresAt), sealOf(SEALED_INVITATION, invitation)];
  },
);

const open = {
  kind: text<'invite' | 'reset'>(),
  expiresAt: 'timestamptz',
  isSound: isAsSealed(SEALED_INVITATION),
  person: group(PERSON_SHAPE),
} as const;

/** Returns an open invitation with its person, unless either row was inserted without the master key. */
export const findInvitation = answerOf(
  'invitation-find',
  open,
  `select ${listColumns(open, 'i.', { isSound: sealColumn(SEALED_INVITATION, 'i.'), person: PERSON_SOURCES })} from invitations i join people p on p.id = i.person_id
   where i.sha256 = $1 and i.ended_at is null and i.expires_at > $2 and p.removed_at is null`,
  (sha256: Buffer, now: UnixMs) => [sha256, new Date(now)],
  (rows) => rows.filter(({ isSound, person }) => isSound && person.isSound)[0] ?? null,
);

/** Redeems an invitation. Returns `false` if the invitation was already redeemed or has ended. */
export const consumeInvitation = attemptOf(
  'invitation-take',
  'update invitations set ended_at = $2, mac = null where sha256 = $1 and ended_at is null and expires_at > $2',
  (sha256: Buffer, now: UnixMs) => [sha256, new Date(now)],
);

const insertCodes = commandOf(
  'recovery-code-insert',
  `insert into recovery_codes (sha256, person_id, created_at, mac)
   select decode(code, 'hex'), $1, $4, decode(mac, 'hex') from unnest($2::text[], $3::text[]) as _ (code, mac)`,
  (personId: string, codes: readonly Buffer[], macs: readonly (string | null)[], now: UnixMs) => [
    ...[personId, codes.map((code) => code.toString('hex')), macs, new Date(now)],
  ],
);

/** Stores the SHA-256 hashes of a person's recovery codes. */
export async function insertRecoveryCodes(
  tx: Sql,
  personId: string,
  codes: readonly Buffer[],
  now: UnixMs,
): Promise<void> {
  const sealer = await tx.sealer();
  const macs = codes.map((sha256) => hexSeal(sealer, SEALED_RECOVERY_CODE, { sha256, personId }));
  await insertCodes(tx, personId, codes, macs, now);
}

const code = { sha256: 'bytea', personId: 'uuid', isSound: isAsSealed(SEALED_RECOVERY_CODE) } as const;
const isOneSound = (rows: readonly { isSound: boolean }[]) => rows.some(({ isSound }) => isSound);

/** Whether a person has this code and hasn't used it. */
export const hasRecoveryCode = answerOf(
  'recovery-code-find',
  code,
  `select ${listColumns(code, '', { isSound: sealColumn(SEALED_RECOVERY_CODE, '') })} from recovery_codes
   where sha256 = $1 and person_id = $2 and ended_at is null`,
  (sha256: Buffer, personId: string) => [sha256, personId],
  isOneSound,
);

/** Uses up a recovery code. Returns `false` if the person has no such code. */
export const consumeRecoveryCode = answerOf(
  'recovery-code-take',
  code,
  `update recovery_codes c set ended_at = $3, mac = null
   from (select sha256, person_id, ended_at, mac from recovery_codes
     where sha256 = $1 and person_id = $2 and ended_at is null for update) b
   where c.sha256 = b.sha256 returning ${listColumns(code, 'b.', { isSound: sealColumn(SEALED_RECOVERY_CODE, 'b.') })}`,
  (sha256: Buffer, personId: string, now: UnixMs) => [sha256, personId, new Date(now)],
  isOneSound,
);
