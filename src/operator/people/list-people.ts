import { toIso } from '../../domain/time.ts';
import { type ListedPerson, listPeopleRows } from '../../store/access/people.ts';
import type { Sql } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { viewPerson } from './select-person.ts';
import type { PersonListView, PersonView } from './views.ts';

/** The people, the oldest first; at most 1,000. */
export async function listPeople({ db }: { db: Sql }, _actor: Actor): Promise<PersonListView> {
  return { data: (await listPeopleRows(db)).map(toView) };
}

function toView({
  createdAt,
  passkeys,
  hasPassword,
  recoveryCodes,
  seenAt,
  invitedUntil,
  ...row
}: ListedPerson): PersonView {
  return {
    ...viewPerson(row),
    ...{ createdAt: toIso(createdAt), passkeys, hasPassword, recoveryCodes },
    seenAt: seenAt && toIso(seenAt),
    invitedUntil: invitedUntil && toIso(invitedUntil),
  };
}
