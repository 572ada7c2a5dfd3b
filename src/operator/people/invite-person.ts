import { createHash } from 'node:crypto';
import { AppError } from '../../domain/errors.ts';
import { uuidV7 } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import { toIso, type UnixMs, unixMs } from '../../domain/time.ts';
import { endInvitations, insertInvitation } from '../../store/access/invitations.ts';
import { insertPerson } from '../../store/access/people.ts';
import type { Database, Sql } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { refuseBeyond } from '../authorize.ts';
import { recordActions } from '../record-actions.ts';
import { type Rights, refuseUnknownProjects } from './read-person.ts';
import { viewPerson } from './select-person.ts';
import type { InvitedView } from './views.ts';

/** `consoleUrl`: the origin of the console from the configuration, never from a request. */
export type InviteDeps = { db: Database; now(): UnixMs; random(bytes: number): Uint8Array; consoleUrl: string | null };

/** A person's access neither ends nor has a list of addresses. */
export const ENDLESS = { expiresAt: null, allowedCidrs: null };

const LIFETIME_MS = 15 * 60_000;
const TOKEN_BYTES = 32;

/** Makes a person who can do nothing yet, and a link by which it chooses what it signs in with. Errors: `CONFLICT`, `CONFIG_INVALID`. */
export async function invitePerson(
  deps: InviteDeps,
  actor: Actor,
  input: Rights & { login: string; name: string },
): Promise<InvitedView> {
  const { db, now, random } = deps;
  requireConsoleUrl(deps);
  const person = { id: uuidV7(now(), random(10)), ...input };
  return db.transaction(async (tx) => {
    await refuseUnknownProjects(tx, actor, input.projects);
    refuseBeyond(actor, { ...input, ...ENDLESS });
    if (!(await insertPerson(tx, person, now()))) {
      const hint = { command: 'user reset', args: [person.login] };
      throw new AppError('CONFLICT', say`${person.login} is there already: "${hint}" makes a new link`);
    }
    const link = await makeLink(tx, deps, { personId: person.id, kind: 'invite' });
    const view = viewPerson(person);
    const { login, name, role, projects } = view;
    await recordActions(tx, actor, now(), [
      { projectId: null, action: 'user.invited', subject: view.personId, detail: { login, name, role, projects } },
    ]);
    return { ...view, ...link };
  });
}

/** Makes the one link of a person that can be taken up; its token stands in the database as a hash alone. */
export async function makeLink(
  tx: Sql,
  deps: Omit<InviteDeps, 'db'>,
  { personId, kind }: { personId: string; kind: 'invite' | 'reset' },
): Promise<{ link: string; expiresAt: string }> {
  const now = deps.now();
  const token = Buffer.from(deps.random(TOKEN_BYTES)).toString('base64url');
  const expiresAt = unixMs(now + LIFETIME_MS);
  await endInvitations(tx, personId, now);
  await insertInvitation(tx, { sha256: hashToken(token), personId, kind, now, expiresAt });
  return { link: `${requireConsoleUrl(deps)}${INVITATION_PATH}${token}`, expiresAt: toIso(expiresAt) };
}

/** The token follows. */
export const INVITATION_PATH = '/invitation/';

/** The SHA-256 by which the database knows a token of 256 random bits. */
export function hashToken(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

function requireConsoleUrl({ consoleUrl }: Pick<InviteDeps, 'consoleUrl'>): string {
  if (consoleUrl !== null) return consoleUrl;
  throw new AppError(
    'CONFIG_INVALID',
    'QUITTANCE_CONSOLE_URL is not set, with which the link begins: set it to the origin of the console, such as https://console.example.com',
  );
}
