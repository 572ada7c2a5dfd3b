import type { UnixMs } from '../../domain/time.ts';
import { answerOf, attemptOf } from '../db/rows-of.ts';
import { sealColumn, sealOf } from '../db/seal.ts';
import { SEALED_PASSKEY } from '../db/sealed-tables.ts';
import { count, group, isAsSealed, listColumns, type Row } from '../db/statement.ts';
import { PERSON_SHAPE, PERSON_SOURCES } from './people.ts';

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

/** Returns a person's first 100 passkeys. All queries in this file ignore rows that were inserted without the master key. */
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
