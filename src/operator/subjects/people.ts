import { createHash } from 'node:crypto';
import { AppError, type FieldProblem } from '../../domain/errors.ts';
import { decodeId, encodeId, uuidV7 } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import { toIso, unixMs } from '../../domain/time.ts';
import { Type } from '../../runtime/type.ts';
import { endInvitations, insertInvitation } from '../../store/access/invitations.ts';
import { findPasskeys } from '../../store/access/passkeys.ts';
import {
  countOtherOwners,
  findFactors,
  findPerson,
  forgetFactors,
  insertPerson,
  listPeopleRows,
  lockAnyPerson,
  lockOwners,
  lockPersonToChange,
  type Person,
  type PersonFactors,
  updateRole,
} from '../../store/access/people.ts';
import { endSessionsOf } from '../../store/access/sessions.ts';
import type { Sql } from '../../store/db/database.ts';
import { type Actor, ROLES, type Role } from '../actor.ts';
import { refuseBeyond } from '../authorize.ts';
import { columnsText, fieldsText } from '../command-words.ts';
import { choice, id, list, maybe, of, type Shown, show, text, time, whole, yes } from '../fields.ts';
import { clip, fieldProblem, nameProblem } from '../input/problems.ts';
import { localOperation, type OperationDeps } from '../operation.ts';
import { argument, BY, flag, line, lines, needed } from '../option.ts';
import { recordActions } from '../record-actions.ts';
import { selectProject } from '../select.ts';

const shown = {
  ...{ personId: of('id', id('usr')), login: text, name: text, role: choice(ROLES), projects: maybe(list(id('prj'))) },
};
const viewPerson = (person: Person) => show(shown, person);
/** `projects`: those that it may see, `null` for all. `invitedUntil`: the end of a link that was not taken up yet. */
const listed = {
  ...{ ...shown, createdAt: time, passkeys: whole, hasPassword: yes, recoveryCodes: whole },
  ...{ seenAt: maybe(time), invitedUntil: maybe(time) },
};
export type PersonView = Shown<typeof listed>;
/** The link is shown this one time. */
export type InvitedView = ReturnType<typeof viewPerson> & { link: string; expiresAt: string };

/** The people, the oldest first; at most 1,000. */
export const listPeople = localOperation({
  action: 'listPeople',
  command: 'user list',
  does: 'list users, their roles, and how they sign in',
  input: Type.Object({}),
  read: () => ({}),
  run: async ({ db }: { db: Sql }, _actor, _wanted: object) => {
    return { data: (await listPeopleRows(db)).map((person) => show(listed, person)) };
  },
  print: ({ data }) => ({
    text: columnsText(data, [
      ['LOGIN', 'login'],
      ['ROLE', 'role'],
      ['PROJECTS', projectsOf],
      ['SIGNS IN WITH', factorsOf],
      ['LAST SEEN', 'seenAt', 'never'],
      ['PERSON', 'personId'],
      ['NAME', 'name'],
    ]),
    ...(data.length === 0
      ? {
          next: say`no users yet: create the first invitation with "${{ command: 'user invite', input: { role: 'owner' } }} <login>"`,
        }
      : {}),
  }),
});

const projectsOf = ({ projects }: Pick<PersonView, 'projects'>) => projects?.join(', ') ?? 'all';

function factorsOf({ passkeys, hasPassword, recoveryCodes, invitedUntil }: PersonView): string {
  const factors = [
    passkeys === 0 ? '' : `${passkeys} passkey${passkeys === 1 ? '' : 's'}`,
    hasPassword ? `password and code (${recoveryCodes} recovery codes)` : '',
  ].filter((each) => each !== '');
  return factors.join(', ') || (invitedUntil === null ? 'nothing' : `not yet, invited until ${invitedUntil}`);
}

type Rights = { role: Role; projects: string[] | null };

const LOGIN = /^[a-z0-9][a-z0-9._+@-]{0,99}$/;
/** A login as the database has it; the empty text, which nobody has, for what can be none. */
export function loginOf(text: string): string {
  const login = text.trim().toLowerCase();
  return LOGIN.test(login) ? login : '';
}

/** The bound of the schema. */
const MAX_PROJECTS = 1000;

/** Reads who is to be invited, with all problems at once. `projectIds`: `prj_…`, all where there are none. Errors: `INVALID_ARGUMENT`. */
export function readNewPerson(input: {
  login: string;
  name?: string | undefined;
  role: string;
  projectIds?: readonly string[] | undefined;
}): Rights & { login: string; name: string } {
  const problems: FieldProblem[] = [];
  const login = loginOf(input.login);
  if (login === '') {
    const reason = `is ${clip(input.login)}: give an e-mail address or a short name with the letters a to z, digits and . _ + @ -`;
    problems.push({ subject: 'login', message: `the login ${reason}` });
  }
  const name = (input.name ?? login).trim();
  const problem = nameProblem(name);
  if (problem !== null && login !== '') problems.push(fieldProblem('name', problem));
  const rights = readParts(input, problems);
  if (problems.length > 0) throw new AppError('INVALID_ARGUMENT', 'no one was invited', { problems });
  return { login, name, ...rights };
}

/** What a person may do from now on; without `projects` it keeps those that it has. */
type NewRights = { role: Role; projects?: string[] | null };

/** Reads what a person may do from now on. Errors: `INVALID_ARGUMENT`. */
function readRights(input: {
  role: string;
  projectIds?: readonly string[] | undefined;
  allProjects?: boolean | undefined;
}): NewRights {
  const problems: FieldProblem[] = [];
  const { role, projects } = readParts(input, problems);
  if (input.allProjects === true && projects !== null) {
    problems.push(fieldProblem('allProjects', say`cannot be given together with ${{ field: 'projectId' }}`));
  }
  if (problems.length > 0) throw new AppError('INVALID_ARGUMENT', 'the role was not changed', { problems });
  return projects === null && input.allProjects !== true ? { role } : { role, projects };
}

function readParts(
  { role: asked, projectIds = [] }: { role: string; projectIds?: readonly string[] | undefined },
  problems: FieldProblem[],
): Rights {
  const role = ROLES.find((each) => each === asked);
  if (role === undefined) problems.push(fieldProblem('role', `is ${clip(asked)}: choose ${ROLES.join(', ')}`));
  const projects = [...new Set(projectIds.map((each) => each.trim()))].flatMap((projectId) => {
    const uuid = decodeId('prj', projectId);
    if (uuid === null) problems.push(fieldProblem('projectId', `is ${clip(projectId)}, which is not a project id`));
    return uuid ?? [];
  });
  if (projects.length > MAX_PROJECTS) problems.push(fieldProblem('projectId', `accepts at most ${MAX_PROJECTS}`));
  if (role === 'owner' && projectIds.length > 0) {
    problems.push(fieldProblem('projectId', 'does not apply to an owner, who can see all projects'));
  }
  return { role: role ?? 'viewer', projects: projects.length === 0 ? null : projects };
}

/** Errors: `NOT_FOUND`. */
async function refuseUnknownProjects(db: Sql, actor: Actor, projects: readonly string[] | null): Promise<void> {
  for (const id of projects ?? []) await selectProject(db, actor, encodeId('prj', id));
}

/** The person with this login or `usr_…`. Errors: `NOT_FOUND`. */
export async function selectPerson(db: Sql, person: string): Promise<Person> {
  const id = decodeId('usr', person);
  const found = await findPerson(db, id === null ? { id, login: loginOf(person) } : { id, login: null });
  if (found !== null) return found;
  throw notThere(person);
}

/** The same, locked until the transaction ends, for who gives it a new seal. Errors: `NOT_FOUND`, `ROW_CHANGED`. */
async function lockToChange(tx: Sql, person: string): Promise<PersonFactors> {
  return (await lockPersonToChange(tx, (await selectPerson(tx, person)).id)) ?? raise(notThere(person));
}

/** The same for who takes all from it, whoever made it. */
async function lockToRemove(tx: Sql, person: string): Promise<Person> {
  return (await lockAnyPerson(tx, (await selectPerson(tx, person)).id)) ?? raise(notThere(person));
}

function raise(error: AppError): never {
  throw error;
}

const notThere = (person: string) =>
  new AppError('NOT_FOUND', say`there is no user ${clip(person)}: list the users with "${{ command: 'user list' }}"`);

/**
 * Takes care that somebody is left who can invite others: refuses to take away the last owner, or the last one who can sign in. Until the
 * transaction ends, nobody else takes one away. Errors: `CONFLICT`.
 */
async function keepAnOwner(tx: Sql, { id, login, role }: Person): Promise<void> {
  if (role !== 'owner') return;
  await lockOwners(tx);
  const others = await countOtherOwners(tx, id);
  if (others.usable > 0 || (others.owners > 0 && !(await canSignIn(tx, id)))) return;
  const why = others.owners === 0 ? 'is the last owner' : 'is the last owner who can sign in';
  throw new AppError(
    'CONFLICT',
    say`${login} ${why}: first invite another one with "${{ command: 'user invite', input: { role: 'owner' }, args: ['<login>'] }}"${
      others.owners === 0 ? '' : ', or wait until the invited owner has accepted the invitation'
    }`,
  );
}

async function canSignIn(tx: Sql, id: string): Promise<boolean> {
  const keys = await findPasskeys(tx, id);
  return keys.length > 0 || (await findFactors(tx, { id, login: null }))?.passwordHash != null;
}

/** `consoleUrl`: the origin of the console from the configuration, never from a request. */
type InviteDeps = Pick<OperationDeps, 'db' | 'now' | 'random' | 'consoleUrl'>;

/** A person's access neither ends nor has a list of addresses. */
const ENDLESS = { expiresAt: null, allowedCidrs: null };

const LIFETIME_MS = 15 * 60_000;
const TOKEN_BYTES = 32;

const role = () => needed('<role>', 'viewer (read-only), operator (resolves received payments) or owner (full access)');
const person = () => argument('<login>', 'the login, or usr_…');

const printLink = (invited: InvitedView) => ({
  text: fieldsText(invited, [
    ['person', 'personId'],
    ['login', 'login'],
    ['role', 'role'],
    ['projects', projectsOf],
    ['link', 'link'],
    ['ends', 'expiresAt'],
  ]),
  next: 'copy the link now, because it is not shown again: send it to that person over a private channel',
});

/** Makes a person who can do nothing yet, and a link by which it chooses what it signs in with. Errors: `CONFLICT`, `CONFIG_INVALID`. */
export const invitePerson = localOperation({
  action: 'invitePerson',
  command: 'user invite',
  does: 'create an invitation link to set up sign-in; it works once, within 15 minutes',
  by: BY,
  input: Type.Object({
    login: argument('<login>', 'an e-mail address or a short name'),
    role: role(),
    projectIds: lines('<prj_…>', 'only these, comma-separated (default: all)'),
    name: line('<name>', 'display name (default: the login)'),
  }),
  read: readNewPerson,
  run: async (deps: InviteDeps, actor, input): Promise<InvitedView> => {
    const { db, now, random } = deps;
    requireConsoleUrl(deps);
    const person = { id: uuidV7(now(), random(10)), ...input };
    return db.transaction(async (tx) => {
      await refuseUnknownProjects(tx, actor, input.projects);
      refuseBeyond(actor, { ...input, ...ENDLESS });
      if (!(await insertPerson(tx, person, now()))) {
        const hint = { command: 'user reset', args: [person.login] };
        throw new AppError('CONFLICT', say`${person.login} already exists: create a new link with "${hint}"`);
      }
      const link = await makeLink(tx, deps, { personId: person.id, kind: 'invite' });
      const view = viewPerson(person);
      const { login, name, role, projects } = view;
      await recordActions(tx, actor, now(), [
        { projectId: null, action: 'user.invited', subject: view.personId, detail: { login, name, role, projects } },
      ]);
      return { ...view, ...link };
    });
  },
  print: printLink,
});

/** Makes the one link of a person that can be taken up; its token stands in the database as a hash alone. */
async function makeLink(
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
  if (consoleUrl !== null) return typeof consoleUrl === 'string' ? consoleUrl : consoleUrl();
  throw new AppError(
    'CONFIG_INVALID',
    'QUITTANCE_CONSOLE_URL is not set, but the link needs it: set it to the origin of the console, such as https://console.example.com',
  );
}

/** Gives a person another role or other projects, and ends all its sessions. `person`: login or `usr_…`. Errors: `NOT_FOUND`, `CONFLICT`, `ROW_CHANGED`. */
export const changeRole = localOperation({
  action: 'changeRole',
  command: 'user role',
  does: 'change the role or projects of a user, and end all their sessions',
  by: BY,
  input: Type.Object({
    ...{ person: person(), role: role() },
    projectIds: lines('<prj_…>', 'only these, comma-separated (default: unchanged)'),
    allProjects: flag('all projects, including future ones'),
  }),
  read: ({ person, ...given }): NewRights & { person: string } => ({ person, ...readRights(given) }),
  // `endedSessions`: of that person, which begins anew with the new role.
  run: async ({ db, now }: Pick<OperationDeps, 'db' | 'now'>, actor, { person, role, projects }) => {
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
  },
  print: (changed) => ({
    text: fieldsText(changed, [
      ['login', 'login'],
      ['role', 'role'],
      ['projects', projectsOf],
      ['sessions ended', 'endedSessions'],
    ]),
  }),
});

/**
 * Takes from a person its passkeys, password and codes, ends its sessions, and makes a new link: for whoever has lost what they sign in with, or
 * may no longer be the only one who has it. Errors: `NOT_FOUND`, `CONFIG_INVALID`, `ROW_CHANGED`.
 */
export const resetPerson = localOperation({
  action: 'resetPerson',
  command: 'user reset',
  does: 'remove all sign-in methods of a user, end their sessions, and create a new invitation link',
  by: BY,
  input: Type.Object({ person: person() }),
  read: ({ person }) => ({ person }),
  run: async (deps: InviteDeps, actor, { person }): Promise<InvitedView> => {
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
  },
  print: printLink,
});

/** Removes a person for ever, with all that it signs in with, whoever made it. What it did stays in the record. Errors: `NOT_FOUND`, `CONFLICT`. */
export const removePerson = localOperation({
  action: 'removePerson',
  command: 'user remove',
  does: 'remove a user permanently, and end their sessions',
  by: BY,
  input: Type.Object({ person: person() }),
  read: ({ person }) => ({ person }),
  run: async ({ db, now }: Pick<OperationDeps, 'db' | 'now'>, actor, { person }) => {
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
  },
  print: ({ login }) => ({ text: `removed ${login}` }),
});

export const operations = [invitePerson, listPeople, changeRole, resetPerson, removePerson];
