import type { UnixMs } from '../../domain/time.ts';
import type { Encrypted } from '../../runtime/key-ring.ts';
import type { Sql } from '../db/database.ts';
import { answerOf, attemptOf, commandOf, rowOf, rowsOf } from '../db/rows-of.ts';
import { hexSeal, sealColumn, sealOf } from '../db/seal.ts';
import { SEALED_INVITATION, SEALED_PASSKEY, SEALED_PERSON, SEALED_RECOVERY_CODE } from '../db/sealed-tables.ts';
import { count, group, isAsSealed, listColumns, maybeCount, type Row, sealed, text } from '../db/statement.ts';

const person = {
  id: 'uuid',
  login: 'text',
  name: 'text',
  role: text<'viewer' | 'operator' | 'owner'>(),
  projects: 'text[]?',
} as const;

/** A console user. `projects` contains the UUIDs of the projects that they may see, or is `null` for all. */
export type Person = Row<typeof person>;

/** The fields and their SQL, for statements that join people as `p`. `isSound` means that the person's seal is valid. */
export const PERSON_SHAPE = { ...person, isSound: isAsSealed(SEALED_PERSON) } as const;
export const PERSON_SOURCES = {
  ...{ id: 'p.id', login: 'p.login', name: 'p.name', role: 'p.role' },
  ...{ projects: 'p.projects::text[]', isSound: sealColumn(SEALED_PERSON, 'p.') },
} as const;
const PERSON = listColumns(person, '', PERSON_SOURCES);

const NO_FACTORS = { passwordHash: null, totpSealed: null };

/** Stores a person. Returns `false` if the login is already taken. */
export const insertPerson = attemptOf(
  'person-insert',
  `insert into people (id, login, name, role, projects, created_at, mac) values ($1, $2, $3, $4, $5::uuid[], $6, $7)
   on conflict (login) where removed_at is null do nothing`,
  ({ id, login, name, role, projects }: Person, now: UnixMs) => [
    ...[id, login, name, role, projects, new Date(now)],
    sealOf(SEALED_PERSON, { ...{ id, login, name, role, projects }, ...NO_FACTORS }),
  ],
);

/** Finds a person by UUID or login, unless they were removed. Doesn't check the seal. */
export const findPerson = rowOf(
  'person-find',
  person,
  `select ${PERSON} from people p where p.removed_at is null and (p.id = $1 or p.login = $2)`,
  ({ id, login }: { id: string | null; login: string | null }) => [id, login],
);

/** Like `findPerson`, but locks the row until the transaction ends. */
export const lockAnyPerson = rowOf(
  'person-lock',
  person,
  `select ${PERSON} from people p where p.id = $1 and p.removed_at is null for update`,
  (id: string) => [id],
);

const factors = {
  ...person,
  passwordHash: 'text?',
  masterKeyId: 'text?',
  totpSealed: 'bytea?',
  totpStep: maybeCount,
} as const;

/** A person with the stored data for verifying their password and code. */
export type PersonFactors = Row<typeof factors>;

const told = { ...factors, isSound: isAsSealed(SEALED_PERSON) } as const;
const TOLD = listColumns(told, 'p.', PERSON_SOURCES);
const soundOf = (rows: Row<typeof told>[]) => rows.filter(({ isSound }) => isSound)[0] ?? null;

/** Returns `null` if the person was inserted or changed without the master key. */
export const findFactors = answerOf(
  'person-factors',
  told,
  `select ${TOLD} from people p where p.removed_at is null and (p.id = $1 or p.login = $2)`,
  ({ id, login }: { id: string | null; login: string | null }) => [id, login],
  soundOf,
);

/** Like `findFactors`, but locks the row until the transaction ends. */
export const lockFactors = answerOf(
  'person-lock-factors',
  told,
  `select ${TOLD} from people p where p.removed_at is null and p.id = $1 for update`,
  (id: string) => [id],
  soundOf,
);

const judged = { ...factors, seal: sealed(SEALED_PERSON) } as const;

/** Locks a person in order to seal it again. Throws `ROW_CHANGED` if its current seal is wrong. */
export const lockPersonToChange = rowOf(
  'person-lock-to-change',
  judged,
  `select ${listColumns(judged, 'p.', { projects: PERSON_SOURCES.projects })} from people p
   where p.removed_at is null and p.id = $1 for update`,
  (id: string) => [id],
);

export function personOf({ id, login, name, role, projects }: Person): Person {
  return { id, login, name, role, projects };
}

const listed = {
  ...person,
  createdAt: 'timestamptz',
  hasPassword: 'bool',
  passkeys: count,
  recoveryCodes: count,
  seenAt: 'timestamptz?',
  invitedUntil: 'timestamptz?',
} as const;

/** Returns the first 1,000 people. */
export const listPeopleRows = rowsOf(
  'person-list',
  listed,
  `select ${PERSON}, p.created_at, p.password_hash is not null as has_password,
     (select count(*) from passkeys k where k.person_id = p.id and k.removed_at is null) as passkeys,
     (select count(*) from recovery_codes c where c.person_id = p.id and c.ended_at is null) as recovery_codes,
     (select max(s.seen_at) from sessions s where s.person_id = p.id) as seen_at,
     (select i.expires_at from invitations i where i.person_id = p.id and i.ended_at is null) as invited_until
   from people p where p.removed_at is null order by p.created_at, p.id limit 1000`,
);

/** Counts the other owners, and how many of them can sign in. */
export const countOtherOwners = answerOf(
  'person-other-owners',
  { owners: count, usable: count },
  `select count(*) as owners, count(*) filter (where p.password_hash is not null
     or exists (select from passkeys k where k.person_id = p.id and k.removed_at is null)) as usable
   from people p where p.role = 'owner' and p.removed_at is null and p.id <> $1`,
  (id: string) => [id],
  ([row]) => row ?? { owners: 0, usable: 0 },
);

/** Prevents other removals of owners until the transaction ends. A trigger in the database takes the same lock. */
export const lockOwners = commandOf(
  'person-lock-owners',
  `select from pg_advisory_xact_lock(hashtext(format('%I.people', current_schema())))`,
);

export const updateRole = commandOf(
  'person-role',
  'update people set role = $2, projects = $3::uuid[], mac = $4 where id = $1',
  (changed: PersonFactors) => [changed.id, changed.role, changed.projects, sealOf(SEALED_PERSON, changed)],
);

/** Removes all of a person's sign-in factors, and ends their sessions and invitations. `isGone` also removes the person. */
export const forgetFactors = commandOf(
  'person-forget-factors',
  `with ended_keys as (update passkeys set removed_at = $2, mac = null where person_id = $1 and removed_at is null),
     ended_codes as (update recovery_codes set ended_at = $2, mac = null where person_id = $1 and ended_at is null),
     ended_invitations as (update invitations set ended_at = $2, mac = null where person_id = $1 and ended_at is null),
     ended_sessions as (update sessions set ended_at = $2, mac = null where person_id = $1 and ended_at is null)
   update people set password_hash = null, master_key_id = null, totp_sealed = null, totp_step = null, misses = 0,
     removed_at = case when $3 then $2::timestamptz end, mac = $4
   where id = $1`,
  (person: Person, now: UnixMs, { isGone }: { isGone: boolean }) => [
    ...[person.id, new Date(now), isGone],
    isGone ? null : sealOf(SEALED_PERSON, { ...personOf(person), ...NO_FACTORS }),
  ],
);

/** Stores a person's password and encrypted TOTP secret. `step` is the time step of the code that confirmed the secret. */
export const storePassword = commandOf(
  'person-password',
  `update people set password_hash = $2, master_key_id = $3, totp_sealed = $4, totp_step = $5, misses = 0, mac = $6 where id = $1`,
  (person: Person, { hash, totp, step }: { hash: string; totp: Encrypted; step: number }) => [
    ...[person.id, hash, totp.masterKeyId, totp.sealed, step],
    sealOf(SEALED_PERSON, { ...personOf(person), passwordHash: hash, totpSealed: totp.sealed }),
  ],
);

/** Accepts the code for a time step, unless a code for the same or a later step was already used. Resets the failed attempts. */
export const consumeTotpStep = attemptOf(
  'person-take-step',
  `update people set totp_step = $2, misses = 0
   where id = $1 and removed_at is null and totp_sealed is not null and (totp_step is null or totp_step < $2)`,
  (id: string, step: number) => [id, step],
);

/**
 * Records a failed code. A person may fail `most` times in a row, and after that once every `everySeconds` seconds. Returns `false` if no
 * attempts are left.
 */
export const takeMiss = attemptOf(
  'person-take-miss',
  `update people p set misses = least(b.misses + 1, 1000), missed_at = $2
   from (select id, greatest(0, misses - floor(greatest(0, extract(epoch from $2::timestamptz - coalesce(missed_at, $2))) / $4::int))::int as misses
     from people where id = $1 and removed_at is null for update) b
   where p.id = b.id and b.misses < $3`,
  (id: string, now: UnixMs, { most, everySeconds }: { most: number; everySeconds: number }) => [
    ...[id, new Date(now), most, everySeconds],
  ],
);

const sealedTotp = { ...factors, masterKeyId: 'text', totpSealed: 'bytea', seal: 'text?' } as const;

/**
 * Returns the TOTP secrets that are encrypted with other master keys, with the people they belong to. At most 500 after an id are returned,
 * and they are locked until the transaction ends. `seal` is the result of `sealColumn`.
 */
export const lockTotpUnderOtherKeys = rowsOf(
  'person-totp-under-other-keys',
  sealedTotp,
  `select ${listColumns(sealedTotp, 'p.', { projects: PERSON_SOURCES.projects, seal: PERSON_SOURCES.isSound })} from people p
   where p.totp_sealed is not null and p.master_key_id <> $1 and p.id > $2 order by p.id limit 500 for update`,
  (keyId: string, after: string) => [keyId, after],
);

/** `mac`: `null` keeps the current one. */
export const reencryptTotpRow = commandOf(
  'person-totp-reseal',
  'update people set master_key_id = $2, totp_sealed = $3, mac = coalesce($4, mac) where id = $1',
  (id: string, totp: Encrypted, mac: Buffer | null) => [id, totp.masterKeyId, totp.sealed, mac],
);

/** Counts how many TOTP secrets are encrypted with each master key. */
export const countTotpByKey = answerOf(
  'person-totp-by-key',
  { masterKeyId: 'text', total: count },
  `select master_key_id, count(*) as total from people where master_key_id is not null
   group by master_key_id order by master_key_id limit 1000`,
  () => [],
  (rows) => new Map(rows.map(({ masterKeyId, total }) => [masterKeyId, total])),
);

const passkey = {
  id: 'bytea',
  publicKey: 'bytea',
  counter: count,
  transports: 'text[]',
  name: 'text',
  createdAt: 'timestamptz',
  lastUsedAt: 'timestamptz?',
  isSound: isAsSealed(SEALED_PASSKEY),
} as const;

/** `id` is assigned by the authenticator. `counter` is its signature counter, which stays at 0 if the authenticator doesn't count. */
export type Passkey = Omit<Row<typeof passkey>, 'isSound'>;

/** Stores a passkey. Returns `false` if a passkey with this id already exists. */
export const insertPasskey = attemptOf(
  'passkey-insert',
  `insert into passkeys (id, person_id, public_key, counter, transports, name, created_at, mac)
   values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict do nothing`,
  (personId: string, { id, publicKey, counter, transports, name, createdAt }: Omit<Passkey, 'lastUsedAt'>) => [
    ...[id, personId, publicKey, counter, transports, name, new Date(createdAt)],
    sealOf(SEALED_PASSKEY, { id, personId, publicKey }),
  ],
);

/** Returns a person's first 100 passkeys. All queries for passkeys ignore rows that were inserted without the master key. */
export const findPasskeys = answerOf(
  'passkey-list',
  passkey,
  `select ${listColumns(passkey, '', { isSound: sealColumn(SEALED_PASSKEY, '') })} from passkeys
   where person_id = $1 and removed_at is null order by created_at, id limit 100`,
  (personId: string) => [personId],
  (rows) => rows.filter(({ isSound }) => isSound),
);

const owned = { ...passkey, person: group(PERSON_SHAPE) } as const;

/** Returns a passkey with its person. */
export const findPasskey = answerOf(
  'passkey-find',
  owned,
  `select ${listColumns(owned, 'k.', { isSound: sealColumn(SEALED_PASSKEY, 'k.'), person: PERSON_SOURCES })} from passkeys k join people p on p.id = k.person_id
   where k.id = $1 and k.removed_at is null and p.removed_at is null`,
  (id: Buffer) => [id],
  (rows) => rows.filter(({ isSound, person }) => isSound && person.isSound)[0] ?? null,
);

/**
 * Records that a passkey was used. Returns `false` if the counter doesn't increase, which suggests a copy, or if the passkey was removed.
 */
export const usePasskey = attemptOf(
  'passkey-use',
  `update passkeys set counter = $2, last_used_at = $3
   where id = $1 and removed_at is null and (counter < $2 or (counter = 0 and $2 = 0))`,
  (id: Buffer, counter: number, now: UnixMs) => [id, counter, new Date(now)],
);

/** Removes a person's passkey. Returns `false` if the person has no passkey with this id. */
export const removePasskeyRow = attemptOf(
  'passkey-remove',
  'update passkeys set removed_at = $3, mac = null where id = $1 and person_id = $2 and removed_at is null',
  (id: Buffer, personId: string, now: UnixMs) => [id, personId, new Date(now)],
);

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
