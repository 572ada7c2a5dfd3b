import { answerOf } from '../db/rows-of.ts';
import { sealColumn } from '../db/seal.ts';
import { SEALED_PASSKEY, SEALED_PERSON } from '../db/sealed-tables.ts';
import { text as column, count, isAsSealed, listColumns, maybeCount, type Row } from '../db/statement.ts';

export const personColumns = {
  id: 'uuid',
  login: 'text',
  name: 'text',
  role: column<'viewer' | 'operator' | 'owner'>(),
  projects: 'text[]?',
} as const;

/** A console user. `projects` contains the UUIDs of the projects that they may see, or is `null` for all. */
export type Person = Row<typeof personColumns>;

/** The fields and their SQL, for statements that join people as `p`. `isSound` means that the person's seal is valid. */
export const PERSON_SHAPE = { ...personColumns, isSound: isAsSealed(SEALED_PERSON) } as const;
export const PERSON_SOURCES = {
  ...{ id: 'p.id', login: 'p.login', name: 'p.name', role: 'p.role' },
  ...{ projects: 'p.projects::text[]', isSound: sealColumn(SEALED_PERSON, 'p.') },
} as const;

export const factorColumns = {
  ...personColumns,
  passwordHash: 'text?',
  masterKeyId: 'text?',
  totpSealed: 'bytea?',
  totpStep: maybeCount,
} as const;

/** A person with the stored data for verifying their password and code. */
export type PersonFactors = Row<typeof factorColumns>;

const told = { ...factorColumns, isSound: isAsSealed(SEALED_PERSON) } as const;
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

/** Counts how many TOTP secrets are encrypted with each master key. */
export const countTotpByKey = answerOf(
  'person-totp-by-key',
  { masterKeyId: 'text', total: count },
  `select master_key_id, count(*) as total from people where master_key_id is not null
   group by master_key_id order by master_key_id limit 1000`,
  () => [],
  (rows) => new Map(rows.map(({ masterKeyId, total }) => [masterKeyId, total])),
);

export function personOf({ id, login, name, role, projects }: Person): Person {
  return { id, login, name, role, projects };
}

export const passkey = {
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

/** Returns a person's first 100 passkeys. All queries for passkeys ignore rows that were inserted without the master key. */
export const findPasskeys = answerOf(
  'passkey-list',
  passkey,
  `select ${listColumns(passkey, '', { isSound: sealColumn(SEALED_PASSKEY, '') })} from passkeys
   where person_id = $1 and removed_at is null order by created_at, id limit 100`,
  (personId: string) => [personId],
  (rows) => rows.filter(({ isSound }) => isSound),
);
