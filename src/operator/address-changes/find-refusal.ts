import { DAY_MS } from '../../domain/capacity.ts';
import { encodeId } from '../../domain/ids.ts';
import { toIso, type UnixMs, unixMs } from '../../domain/time.ts';
import type { Sql } from '../../store/db/database.ts';
import { answerOf, rowOf } from '../../store/db/rows-of.ts';
import { sealColumn } from '../../store/db/seal.ts';
import { SEALED_ACTION } from '../../store/db/sealed-tables.ts';
import { count, isAsSealed, json, listColumns, sealed, text } from '../../store/db/statement.ts';
import type { AddressChange } from '../../store/ledger/address-changes.ts';
import { type Actor, ROLES } from '../actor.ts';

/** A session lives so long at most: whoever stole one is out of it when the owner that it invited may confirm. */
const SETTLED_MS = 7 * DAY_MS;

const maker = {
  actorKind: text<'cli' | 'console' | 'admin' | 'service' | 'key'>(),
  actorId: 'uuid?',
  seal: sealed(SEALED_ACTION),
} as const;

const findMaker = rowOf(
  'address-change-key-maker',
  maker,
  `select ${listColumns(maker)} from operator_actions where subject = $1 and action = 'admin-key.created'`,
  (adminKeyId: string) => [adminKeyId],
);

const granted = {
  seq: count,
  actorKind: maker.actorKind,
  actedAt: 'timestamptz',
  // Of who was invited or reset, and of who was given another one.
  detail: json<{ role?: string; to?: string }>(),
  isSound: isAsSealed(SEALED_ACTION),
} as const;

/** How a person came to its role, the newest 100 entries first; none that nobody made. */
const findGrants = answerOf(
  'address-change-new-owner',
  granted,
  `select ${listColumns(granted, '', { isSound: sealColumn(SEALED_ACTION, '') })} from operator_actions
   where subject = $1 and action in ('user.invited', 'user.reset', 'user.changed') order by seq desc limit 100`,
  (personId: string) => [personId],
  (rows) => rows.filter(({ isSound }) => isSound),
);

/**
 * Whether the audit log bears out that a person has been an owner since, or that a command made it one. An entry that somebody changed counts for
 * nothing, so the newest one that counts must say that the person is an owner.
 */
async function isSettled(db: Sql, personId: string, since: UnixMs): Promise<boolean> {
  const grants = await findGrants(db, personId);
  const role = grants[0]?.detail.to ?? grants[0]?.detail.role;
  return role === 'owner' && grants.every(({ actorKind, actedAt }) => actorKind === 'cli' || actedAt <= since);
}

/**
 * Why an actor may not confirm a change: `null` where it may. It is an owner of its own: neither who proposed it, nor who made the key that did,
 * nor somebody whom one of these could have made an owner just for this. A command on the machine needs none of it.
 */
export async function findRefusal(
  { db, now }: { db: Sql; now(): UnixMs },
  { kind, id, role }: Actor,
  change: AddressChange,
): Promise<string | null> {
  if (change.state !== 'waiting') return 'it waits no more';
  if (kind === 'cli') return null;
  const otherwise = `else they are added at ${toIso(change.dueAt)}`;
  if (kind === 'admin' || id === null) return `it takes the second factor of an owner, in the console; ${otherwise}`;
  if (ROLES.indexOf(role) < ROLES.indexOf('owner')) return `it takes an owner; ${otherwise}`;
  if (change.actorKind === 'console' && change.actorId === id) {
    return `you proposed it: another owner confirms it; ${otherwise}`;
  }
  if (change.actorKind === 'admin') {
    const made = await findMaker(db, encodeId('adm', change.actorId));
    if (made?.actorId === id) return `you made the key that proposed it: another owner confirms it; ${otherwise}`;
    if (made?.actorKind !== 'console' && made?.actorKind !== 'cli') {
      return `no person made the key that proposed it, so nobody can confirm it; ${otherwise}`;
    }
  }
  if (!(await isSettled(db, encodeId('usr', id), unixMs(now() - SETTLED_MS)))) {
    return `you were invited, reset or given another role in the last seven days, or the audit log does not say how you became an owner: another owner confirms it; ${otherwise}`;
  }
  return null;
}
