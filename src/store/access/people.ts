import type { UnixMs } from '../../domain/time.ts';
import type { Encrypted } from '../../runtime/key-ring.ts';
import { answerOf, commandOf, rowOf, rowsOf } from '../db/rows-of.ts';
import { sealColumn, sealOf } from '../db/seal.ts';
import { SEALED_PERSON } from '../db/sealed-tables.ts';
import { count, isAsSealed, listColumns, maybeCount, type Row, sealed, text } from '../db/statement.ts';

const person = {
  id: 'uuid',
  login: 'text',
  name: 'text',
  role: text<'viewer' | 'operator' | 'owner'>(),
  projects: 'text[]?',
} as const;

/** Somebody who uses the console. `projects`: UUIDs of those that it may see, `null` for all. */
export type Person = Row<typeof person>;

/** For statements that join people as `p`: the fields, and where they stand. `isSound`: whether the person is as it was sealed. */
export const PERSON_SHAPE = { ...person, isSound: isAsSealed(SEALED_PERSON) } as const;
export const PERSON_SOURCES = {
  ...{ id: 'p.id', login: 'p.login', name: 'p.name', role: 'p.role' },
  ...{ projects: 'p.projects::text[]', isSound: sealColumn(SEALED_PERSON, 'p.') },
} as const;
const PERSON = listColumns(person, '', PERSON_SOURCES);

const NO_FACTORS = { passwordHash: null, totpSealed: null };

/** Does nothing and answers `false` if somebody has this login. */
export const insertPerson = answerOf(
  'person-insert',
  { id: 'uuid' },
  `insert into people (id, login, name, role, projects, created_at, mac) values ($1, $2, $3, $4, $5::uuid[], $6, $7)
   on conflict (login) where removed_at is null do nothing returning id`,
  ({ id, login, name, role, projects }: Person, now: UnixMs) => [
    ...[id, login, name, role, projects, new Date(now)],
    sealOf(SEALED_PERSON, { ...{ id, login, name, role, projects }, ...NO_FACTORS }),
  ],
  (rows) => rows.length > 0,
);

/** By the UUID or by the login, which no other person has; not whoever was removed. Says nothing about the seal, here and below. */
export const findPerson = rowOf(
  'person-find',
  person,
  `select ${PERSON} from people p where p.removed_at is null and (p.id = $1 or p.login = $2)`,
  ({ id, login }: { id: string | null; login: string | null }) => [id, login],
);

/** The same, locked until the transaction ends. */
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

/** A person with what a password and a code are compared with. */
export type PersonFactors = Row<typeof factors>;

const told = { ...factors, isSound: isAsSealed(SEALED_PERSON) } as const;
const TOLD = listColumns(told, 'p.', PERSON_SOURCES);
const soundOf = (rows: Row<typeof told>[]) => rows.filter(({ isSound }) => isSound)[0] ?? null;

/** Who made a person without the master key, or changed one, made nobody. */
export const findFactors = answerOf(
  'person-factors',
  told,
  `select ${TOLD} from people p where p.removed_at is null and (p.id = $1 or p.login = $2)`,
  ({ id, login }: { id: string | null; login: string | null }) => [id, login],
  soundOf,
);

/** The same, locked until the transaction ends. */
export const lockFactors = answerOf(
  'person-lock-factors',
  told,
  `select ${TOLD} from people p where p.removed_at is null and p.id = $1 for update`,
  (id: string) => [id],
  soundOf,
);

const judged = { ...factors, seal: sealed(SEALED_PERSON) } as const;

/** The same for who gives it a new seal: a person that is not as it was sealed is `ROW_CHANGED`. */
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

/** The people that there are, the first 1,000. */
export const listPeopleRows = rowsOf(
  'person-list',
  listed,
  `select ${PERSON}, p.created_at, p.password_hash is not null as has_password,
     (select count(*) from passkeys k where k.person_id = p.id and k.removed_at is null) as passkeys,
     (select count(*) from recovery_codes c where c.person_id = p.id and c.ended_at is null) as recovery_codes,
     (select max(s.seen_at) from sessions s where s.person_id = p.id) as seen_at,
     (select i.expires_at from invitations i where i.person_id = p.id and i.ended_at is null) as invited_until
   from people p where p.removed_at is null order by p.created_at, p.id limit 1000`,
  () => [],
);

/** How many other owners there are who can sign in. */
export const countOtherOwners = answerOf(
  'person-other-owners',
  { owners: count, usable: count },
  `select count(*) as owners, count(*) filter (where p.password_hash is not null
     or exists (select from passkeys k where k.person_id = p.id and k.removed_at is null)) as usable
   from people p where p.role = 'owner' and p.removed_at is null and p.id <> $1`,
  (id: string) => [id],
  ([row]) => row ?? { owners: 0, usable: 0 },
);

/** Until the transaction ends, nobody else takes an owner away. The guard in the database takes the same lock. */
export const lockOwners = answerOf(
  'person-lock-owners',
  { isLocked: 'bool' },
  `select pg_advisory_xact_lock(hashtext(format('%I.people', current_schema()))) is not null as is_locked`,
  () => [],
  () => undefined,
);

export const updateRole = commandOf(
  'person-role',
  'update people set role = $2, projects = $3::uuid[], mac = $4 where id = $1',
  (changed: PersonFactors) => [changed.id, changed.role, changed.projects, sealOf(SEALED_PERSON, changed)],
);

/** Takes from a person all that it signs in with, and ends its sessions and invitations. `isGone`: it is removed as well. */
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

/** Gives a person a password and a sealed TOTP secret; `step` is the period of the code that proved it. */
export const storePassword = commandOf(
  'person-password',
  `update people set password_hash = $2, master_key_id = $3, totp_sealed = $4, totp_step = $5, misses = 0, mac = $6 where id = $1`,
  (person: Person, { hash, totp, step }: { hash: string; totp: Encrypted; step: number }) => [
    ...[person.id, hash, totp.masterKeyId, totp.sealed, step],
    sealOf(SEALED_PERSON, { ...personOf(person), passwordHash: hash, totpSealed: totp.sealed }),
  ],
);

/** Takes the code of a period, unless one of it or of a later one was taken. Forgets the misses. */
export const consumeTotpStep = answerOf(
  'person-take-step',
  { id: 'uuid' },
  `update people set totp_step = $2, misses = 0
   where id = $1 and removed_at is null and totp_sealed is not null and (totp_step is null or totp_step < $2) returning id`,
  (id: string, step: number) => [id, step],
  (rows) => rows.length > 0,
);

/** Takes one of the wrong codes that a person has: `most` at once, and another one after each `everySeconds`. `false`: none is left. */
export const takeMiss = answerOf(
  'person-take-miss',
  { id: 'uuid' },
  `update people p set misses = least(b.misses + 1, 1000), missed_at = $2
   from (select id, greatest(0, misses - floor(greatest(0, extract(epoch from $2::timestamptz - coalesce(missed_at, $2))) / $4::int))::int as misses
     from people where id = $1 and removed_at is null for update) b
   where p.id = b.id and b.misses < $3 returning p.id`,
  (id: string, now: UnixMs, { most, everySeconds }: { most: number; everySeconds: number }) => [
    ...[id, new Date(now), most, everySeconds],
  ],
  (rows) => rows.length > 0,
);

const sealedTotp = { ...factors, masterKeyId: 'text', totpSealed: 'bytea', seal: 'text?' } as const;

/**
 * The sealed TOTP secrets under other master keys than these, with their people: the first 500 behind an id, locked until the transaction ends.
 * `seal`: as `sealColumn` makes it.
 */
export const lockTotpUnderOtherKeys = rowsOf(
  'person-totp-under-other-keys',
  sealedTotp,
  `select ${listColumns(sealedTotp, 'p.', { projects: PERSON_SOURCES.projects, seal: PERSON_SOURCES.isSound })} from people p
   where p.totp_sealed is not null and p.master_key_id <> $1 and p.id > $2 order by p.id limit 500 for update`,
  (keyId: string, after: string) => [keyId, after],
);

/** `mac`: `null` keeps the one that is there. */
export const reencryptTotpRow = commandOf(
  'person-totp-reseal',
  'update people set master_key_id = $2, totp_sealed = $3, mac = coalesce($4, mac) where id = $1',
  (id: string, totp: Encrypted, mac: Buffer | null) => [id, totp.masterKeyId, totp.sealed, mac],
);

/** How many TOTP secrets each master key seals. */
export const countTotpByKey = answerOf(
  'person-totp-by-key',
  { masterKeyId: 'text', total: count },
  `select master_key_id, count(*) as total from people where master_key_id is not null
   group by master_key_id order by master_key_id limit 1000`,
  () => [],
  (rows) => new Map(rows.map(({ masterKeyId, total }) => [masterKeyId, total])),
);
