import type { UnixMs } from '../../domain/time.ts';
import { forgetFactors, updateRole } from '../../store/access/people.ts';
import { endSessionsOf } from '../../store/access/sessions.ts';
import type { Database } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { refuseBeyond } from '../authorize.ts';
import { recordActions } from '../record-actions.ts';
import { ENDLESS, type InviteDeps, makeLink } from './invite-person.ts';
import { type NewRights, refuseUnknownProjects } from './read-person.ts';
import { keepAnOwner, lockToChange, lockToRemove, viewPerson } from './select-person.ts';
import type { ChangedPersonView, InvitedView, RemovedPersonView } from './views.ts';

type Deps = { db: Database; now(): UnixMs };

/** Gives a person another role or other projects, and ends all its sessions. `person`: login or `usr_…`. Errors: `NOT_FOUND`, `CONFLICT`, `ROW_CHANGED`. */
export async function changeRole(
  { db, now }: Deps,
  actor: Actor,
  { person, role, projects }: NewRights & { person: string },
): Promise<ChangedPersonView> {
  return db.transaction(async (tx) => {
    const found = await lockToChange(tx, person);
    const rights = { role, projects: role === 'owner' ? null : projects === undefined ? found.projects : projects };
    if (role !== 'owner') await keepAnOwner(tx, found);
    await refuseUnknownProjects(tx, actor, rights.projects);
    refuseBeyond(actor, { ...rights, ...ENDLESS });
    await updateRole(tx, { ...found, ...rights });
    const endedSessions = await endSessionsOf(tx, found.id, now());
    const [before, after] = [viewPerson(found), viewPerson({ ...found, ...rights })];
    const detail = {
      ...{ login: found.login, from: before.role, to: after.role },
      ...{ fromProjects: before.projects, toProjects: after.projects, endedSessions },
    };
    await recordActions(tx, actor, now(), [
      { projectId: null, action: 'user.changed', subject: after.personId, detail },
    ]);
    return { ...after, endedSessions };
  });
}

/**
 * Takes from a person its passkeys, password and codes, ends its sessions, and makes a new link: for whoever has lost what they sign in with, or
 * may no longer be the only one who has it. Errors: `NOT_FOUND`, `CONFIG_INVALID`, `ROW_CHANGED`.
 */
export async function resetPerson(
  deps: InviteDeps,
  actor: Actor,
  { person }: { person: string },
): Promise<InvitedView> {
  return deps.db.transaction(async (tx) => {
    const found = await lockToChange(tx, person);
    // Whoever has the link is that person.
    refuseBeyond(actor, { ...found, ...ENDLESS });
    await forgetFactors(tx, found, deps.now(), { isGone: false });
    const link = await makeLink(tx, deps, { personId: found.id, kind: 'reset' });
    const view = viewPerson(found);
    const detail = { login: found.login, role: found.role };
    await recordActions(tx, actor, deps.now(), [
      { projectId: null, action: 'user.reset', subject: view.personId, detail },
    ]);
    return { ...view, ...link };
  });
}

/** Removes a person for ever, with all that it signs in with, whoever made it. What it did stays in the record. Errors: `NOT_FOUND`, `CONFLICT`. */
export async function removePerson(
  { db, now }: Deps,
  actor: Actor,
  { person }: { person: string },
): Promise<RemovedPersonView> {
  return db.transaction(async (tx) => {
    const found = await lockToRemove(tx, person);
    await keepAnOwner(tx, found);
    await forgetFactors(tx, found, now(), { isGone: true });
    const { personId, login, role } = viewPerson(found);
    await recordActions(tx, actor, now(), [
      { projectId: null, action: 'user.removed', subject: personId, detail: { login, role } },
    ]);
    return { personId, login, status: 'removed' };
  });
}
