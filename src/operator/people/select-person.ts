import { AppError } from '../../domain/errors.ts';
import { decodeId, encodeId } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import { findPasskeys } from '../../store/access/passkeys.ts';
import {
  countOtherOwners,
  findFactors,
  findPerson,
  lockAnyPerson,
  lockOwners,
  lockPersonToChange,
  type Person,
  type PersonFactors,
} from '../../store/access/people.ts';
import type { Sql } from '../../store/db/database.ts';
import { clip } from '../input/clip.ts';
import { loginOf } from './read-person.ts';

/** The person with this login or `usr_…`. Errors: `NOT_FOUND`. */
export async function selectPerson(db: Sql, person: string): Promise<Person> {
  const id = decodeId('usr', person);
  const found = await findPerson(db, id === null ? { id, login: loginOf(person) } : { id, login: null });
  if (found !== null) return found;
  throw notThere(person);
}

/** The same, locked until the transaction ends, for who gives it a new seal. Errors: `NOT_FOUND`, `ROW_CHANGED`. */
export async function lockToChange(tx: Sql, person: string): Promise<PersonFactors> {
  return (await lockPersonToChange(tx, (await selectPerson(tx, person)).id)) ?? raise(notThere(person));
}

/** The same for who takes all from it, whoever made it. */
export async function lockToRemove(tx: Sql, person: string): Promise<Person> {
  return (await lockAnyPerson(tx, (await selectPerson(tx, person)).id)) ?? raise(notThere(person));
}

function raise(error: AppError): never {
  throw error;
}

const notThere = (person: string) =>
  new AppError(
    'NOT_FOUND',
    say`there is no person ${clip(person)}: "${{ command: 'user list' }}" shows those there are`,
  );

/**
 * Takes care that somebody is left who can invite others: refuses to take away the last owner, or the last one who can sign in. Until the
 * transaction ends, nobody else takes one away. Errors: `CONFLICT`.
 */
export async function keepAnOwner(tx: Sql, { id, login, role }: Person): Promise<void> {
  if (role !== 'owner') return;
  await lockOwners(tx);
  const others = await countOtherOwners(tx, id);
  if (others.usable > 0 || (others.owners > 0 && !(await canSignIn(tx, id)))) return;
  const why = others.owners === 0 ? 'is the last owner' : 'is the last owner who can sign in';
  throw new AppError(
    'CONFLICT',
    say`${login} ${why}: first make another one with "${{ command: 'user invite', input: { role: 'owner' }, args: ['<login>'] }}"${
      others.owners === 0 ? '' : ', or wait until that person has taken up the invitation'
    }`,
  );
}

async function canSignIn(tx: Sql, id: string): Promise<boolean> {
  const keys = await findPasskeys(tx, id);
  return keys.length > 0 || (await findFactors(tx, { id, login: null }))?.passwordHash != null;
}

/** A person as every view shows it. */
export function viewPerson({ id, login, name, role, projects }: Person) {
  return {
    ...{ personId: encodeId('usr', id), login, name, role },
    projects: projects?.map((project) => encodeId('prj', project)) ?? null,
  };
}
