import { createHash } from 'node:crypto';
import { AppError, configInvalid, conflict, type FieldProblem, notFound } from '../../../core/domain/errors.ts';
import { decodeId, encodeId, uuidV7 } from '../../../core/domain/ids.ts';
import { say } from '../../../core/domain/message.ts';
import { toIso, type UnixMs, unixMs } from '../../../core/domain/time.ts';
import { Type } from '../../../core/runtime/type.ts';
import {
  factorColumns,
  findFactors,
  findPasskeys,
  PERSON_SOURCES,
  type Person,
  type PersonFactors,
  personColumns,
  personOf,
} from '../../../core/store/access/people.ts';
import type { Sql } from '../../../core/store/db/database.ts';
import { answerOf, attemptOf, changesOf, commandOf, rowOf, rowsOf } from '../../../core/store/db/rows-of.ts';
import { sealOf } from '../../../core/store/db/seal.ts';
import { SEALED_INVITATION, SEALED_PERSON } from '../../../core/store/db/sealed-tables.ts';
import { count, listColumns, sealed } from '../../../core/store/db/statement.ts';
import { type Actor, ROLES, type Role } from '../actor.ts';
import { refuseBeyond } from '../authorize.ts';
import { columnsText, fieldsText } from '../command-words.ts';
import { choice, id, list, maybe, of, type Shown, show, text, time, whole, yes } from '../fields.ts';
import { clip, fieldProblem, nameProblem } from '../input/problems.ts';
import { localOperation, type OperationDeps } from '../operation.ts';
import { argument, BY, flag, line, lines, needed } from '../option.ts';
import { recordAction } from '../record-actions.ts';
import { selectProject } from '../select.ts';

const PERSON = listColumns(personColumns, '', PERSON_SOURCES);

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
  personColumns,
  `select ${PERSON} from people p where p.removed_at is null and (p.id = $1 or p.login = $2)`,
  ({ id, login }: { id: string | null; login: string | null }) => [id, login],
);

/** Like `findPerson`, but locks the row until the transaction ends. */
const lockAnyPerson = rowOf(
  'person-lock',
  personColumns,
  `select ${PERSON} from people p where p.id = $1 and p.removed_at is null for update`,
  (id: string) => [id],
);

const judged = { ...factorColumns, seal: sealed(SEALED_PERSON) } as const;

/** Locks a person in order to seal it again. Throws `ROW_CHANGED` if its current seal is wrong. */
const lockPersonToChange = rowOf(
  'person-lock-to-change',
  judged,
  `select ${listColumns(judged, 'p.', { projects: PERSON_SOURCES.projects })} from people p
   where p.removed_at is null and p.id = $1 for update`,
  (id: string) => [id],
);

const listedColumns = {
  ...personColumns,
  createdAt: 'timestamptz',
  hasPassword: 'bool',
  passkeys: count,
  recoveryCodes: count,
  seenAt: 'timestamptz?',
  invitedUntil: 'timestamptz?',
} as const;

/** Returns the first 1,000 people. */
const listPeopleRows = rowsOf(
  'person-list',
  listedColumns,
  `select ${PERSON}, p.created_at, p.password_hash is not null as has_password,
     (select count(*) from passkeys k where k.person_id = p.id and k.removed_at is null) as passkeys,
     (select count(*) from recovery_codes c where c.person_id = p.id and c.ended_at is null) as recovery_codes,
     (select max(s.seen_at) from sessions s where s.person_id = p.id) as seen_at,
     (select i.expires_at from invitations i where i.person_id = p.id and i.ended_at is null) as invited_until
   from people p where p.removed_at is null order by p.created_at, p.id limit 1000`,
);

/** Counts the other owners, and how many of them can sign in. */
const countOtherOwners = answerOf(
  'person-other-owners',
  { owners: count, usable: count },
  `select count(*) as owners, count(*) filter (where p.password_hash is not null
     or exists (select from passkeys k where k.person_id = p.id and k.removed_at is null)) as usable
   from people p where p.role = 'owner' and p.removed_at is null and p.id <> $1`,
  (id: string) => [id],
  ([row]) => row ?? { owners: 0, usable: 0 },
);

/** Prevents other removals of owners until the transaction ends. A trigger in the database takes the same lock. */
const lockOwners = commandOf(
  'person-lock-owners',
  `select from pg_advisory_xact_lock(hashtext(format('%I.people', current_schema())))`,
);

const updateRole = commandOf(
  'person-role',
  'update people set role = $2, projects = $3::uuid[], mac = $4 where id = $1',
  (changed: PersonFactors) => [changed.id, changed.role, changed.projects, sealOf(SEALED_PERSON, changed)],
);

/** Removes all of a person's sign-in factors, and ends their sessions and invitations. `isGone` also removes the person. */
const forgetFactors = commandOf(
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

/** Ends a person's open invitation, if there is one. */
const endInvitations = commandOf(
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
const insertInvitation = commandOf(
  'invitation-insert',
  'insert into invitations (sha256, person_id, kind, created_at, expires_at, mac) values ($1, $2, $3, $4, $5, $6)',
  (invitation: { sha256: Buffer; personId: string; kind: 'invite' | 'reset'; now: UnixMs; expiresAt: UnixMs }) => {
    const { sha256, personId, kind, now, expiresAt } = invitation;
    return [sha256, personId, kind, new Date(now), new Date(expiresAt), sealOf(SEALED_INVITATION, invitation)];
  },
);

/** Ends all of a person's sessions. Returns how many there were. */
const endSessionsOf = changesOf(
  'session-end-all',
  'update sessions set ended_at = $2, mac = null where person_id = $1 and ended_at is null',
  (personId: string, now: UnixMs) => [personId, new Date(now)],
);

const shown = {
  ...{ personId: of('id', id('usr')), login: text, name: text, role: choice(ROLES), projects: maybe(list(id('prj'))) },
};
const viewPerson = (person: Person) => show(shown, person);
/** `projects` are the projects that the person may see; `null` means all. `invitedUntil` is when a link that isn't redeemed yet expires. */
const listed = {
  ...{ ...shown, createdAt: time, passkeys: whole, hasPassword: yes, recoveryCodes: whole },
  ...{ seenAt: maybe(time), invitedUntil: maybe(time) },
};
export type PersonView = Shown<typeof listed>;
/** The link is shown only once. */
export type InvitedView = ReturnType<typeof viewPerson> & { link: string; expiresAt: string };

export const listPeople = localOperation({
  action: 'listPeople',
  command: 'user list',
  does: 'list users, their roles, and how they sign in',
  input: Type.Object({}),
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
    next:
      data.length === 0 &&
      say`no users yet: create the first invitation with "${{ command: 'user invite', input: { role: 'owner' } }} <login>"`,
  }),
});

const projectsOf = ({ projects }: Pick<PersonView, 'projects'>) => projects?.join(', ') ?? 'all';

function factorsOf({ passkeys, hasPassword, recoveryCodes, invitedUntil }: PersonView): string {
  const factors = [
    passkeys === 0 ? '' : `${passkeys} passkey${passkeys === 1 ? '' : 's'}`,
    hasPassword ? `password and code (${recoveryCodes} recovery codes)` : '',
  ].filter((each) => each !== '');
  return (
    factors.join(', ') || (invitedUntil === null ? 'nothing' : `not set up yet; invitation valid until ${invitedUntil}`)
  );
}

type Rights = { role: Role; projects: string[] | null };
type GivenRights = { role: string; projectIds?: readonly string[] | undefined };

const LOGIN = /^[a-z0-9][a-z0-9._+@-]{0,99}$/;
/** Normalises a login as the database stores it. Returns an empty text, which no one has, if the text can't be a login. */
export function loginOf(text: string): string {
  const login = text.trim().toLowerCase();
  return LOGIN.test(login) ? login : '';
}

/** The limit that the database schema sets. */
const MAX_PROJECTS = 1000;

/**
 * Reads the person to invite and reports all problems at once. `projectIds` are `prj_…`; without them, the person sees all projects. Throws
 * `INVALID_ARGUMENT`.
 */
export function readNewPerson(
  input: GivenRights & { login: string; name?: string | undefined },
): Rights & { login: string; name: string } {
  const problems: FieldProblem[] = [];
  const login = loginOf(input.login);
  if (login === '') {
    const reason = `is ${clip(input.login)}: use an e-mail address or a short name with the letters a to z, digits and . _ + @ -`;
    problems.push({ subject: 'login', message: `the login ${reason}` });
  }
  const name = (input.name ?? login).trim();
  const problem = nameProblem(name);
  if (problem !== null && login !== '') problems.push(fieldProblem('name', problem));
  const rights = readParts(input, problems);
  if (problems.length > 0) throw new AppError('INVALID_ARGUMENT', 'no one was invited', { problems });
  return { login, name, ...rights };
}

/** A person's new rights. Without `projects`, the person keeps the current ones. */
type NewRights = { role: Role; projects?: string[] | null };

/** Reads a person's new rights. Throws `INVALID_ARGUMENT`. */
function readRights(input: GivenRights & { allProjects?: boolean | undefined }): NewRights {
  const problems: FieldProblem[] = [];
  const { role, projects } = readParts(input, problems);
  if (input.allProjects === true && projects !== null) {
    problems.push(fieldProblem('allProjects', say`cannot be combined with ${{ field: 'projectId' }}`));
  }
  if (problems.length > 0) throw new AppError('INVALID_ARGUMENT', 'the role was not changed', { problems });
  return projects === null && input.allProjects !== true ? { role } : { role, projects };
}

function readParts({ role: asked, projectIds = [] }: GivenRights, problems: FieldProblem[]): Rights {
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

/** Throws `NOT_FOUND`. */
async function refuseUnknownProjects(db: Sql, actor: Actor, projects: readonly string[] | null): Promise<void> {
  for (const id of projects ?? []) await selectProject(db, actor, encodeId('prj', id));
}

/** Finds the person with this login or `usr_…`. Throws `NOT_FOUND`. */
export async function selectPerson(db: Sql, person: string): Promise<Person> {
  const id = decodeId('usr', person);
  const found = await findPerson(db, id === null ? { id, login: loginOf(person) } : { id, login: null });
  if (found !== null) return found;
  throw notThere(person);
}

/** Like `selectPerson`, but also locks the person until the transaction ends. Throws `NOT_FOUND`, or an error of `lock`. */
async function selectLocked<Locked>(
  tx: Sql,
  person: string,
  lock: (tx: Sql, id: string) => Promise<Locked | null>,
): Promise<Locked> {
  const locked = await lock(tx, (await selectPerson(tx, person)).id);
  if (locked !== null) return locked;
  throw notThere(person);
}

const notThere = (person: string) =>
  notFound`there is no user ${clip(person)}: list the users with "${{ command: 'user list' }}"`;

/**
 * Refuses to remove the last owner, or the last owner who can sign in, so that someone can still invite others. No one else can remove an
 * owner until the transaction ends. Throws `CONFLICT`.
 */
async function keepAnOwner(tx: Sql, { id, login, role }: Person): Promise<void> {
  if (role !== 'owner') return;
  await lockOwners(tx);
  const others = await countOtherOwners(tx, id);
  if (others.usable > 0 || (others.owners > 0 && !(await canSignIn(tx, id)))) return;
  const why = others.owners === 0 ? 'is the last owner' : 'is the last owner who can sign in';
  throw conflict`${login} ${why}: first invite another owner with "${{ command: 'user invite', input: { role: 'owner' }, args: ['<login>'] }}"${
    others.owners === 0 ? '' : ', or wait until the invited owner has accepted the invitation'
  }`;
}

async function canSignIn(tx: Sql, id: string): Promise<boolean> {
  const keys = await findPasskeys(tx, id);
  return keys.length > 0 || (await findFactors(tx, { id, login: null }))?.passwordHash != null;
}

/** `consoleUrl` is the console's configured origin, never one from a request. */
type InviteDeps = Pick<OperationDeps, 'db' | 'now' | 'random' | 'consoleUrl'>;

/** A person's access neither expires nor is limited to certain addresses. */
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

/** Creates a person who can't do anything yet, and a link for choosing how to sign in. Throws `CONFLICT` or `CONFIG_INVALID`. */
export const invitePerson = localOperation({
  action: 'invitePerson',
  command: 'user invite',
  does: 'create an invitation link to set up sign-in (single use, expires after 15 minutes)',
  by: BY,
  input: Type.Object({
    login: argument('<login>', 'an e-mail address or a short name'),
    role: role(),
    projectIds: lines('<prj_…>', 'only these projects, comma-separated (default: all)'),
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
        throw conflict`${person.login} already exists: create a new link with "${hint}"`;
      }
      const link = await makeLink(tx, deps, { personId: person.id, kind: 'invite' });
      const view = viewPerson(person);
      const { personId: subject, ...detail } = view;
      await recordAction(tx, actor, now(), 'user.invited', { subject, detail });
      return { ...view, ...link };
    });
  },
  print: printLink,
});

/** Creates a link for a person. All the person's earlier links become invalid. The database stores its token only as a hash. */
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

/** The token follows this path. */
export const INVITATION_PATH = '/invitation/';

/** The SHA-256 that the database stores for a token of 256 random bits. */
export function hashToken(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

function requireConsoleUrl({ consoleUrl }: Pick<InviteDeps, 'consoleUrl'>): string {
  if (consoleUrl !== null) return typeof consoleUrl === 'string' ? consoleUrl : consoleUrl();
  throw configInvalid`QUITTANCE_CONSOLE_URL is not set, but the link needs it: set it to the console's origin, such as https://console.example.com`;
}

export const changeRole = localOperation({
  action: 'changeRole',
  command: 'user role',
  does: "change a user's role or projects, and end all their sessions",
  by: BY,
  input: Type.Object({
    ...{ person: person(), role: role() },
    projectIds: lines('<prj_…>', 'only these projects, comma-separated (default: unchanged)'),
    allProjects: flag('all projects, including future projects'),
  }),
  read: ({ person, ...given }): NewRights & { person: string } => ({ person, ...readRights(given) }),
  // `endedSessions` counts the person's sessions; new ones get the new role.
  run: async ({ db, now }: Pick<OperationDeps, 'db' | 'now'>, actor, { person, role, projects }) => {
    return db.transaction(async (tx) => {
      // The row gets a new seal.
      const found = await selectLocked(tx, person, lockPersonToChange);
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
      await recordAction(tx, actor, now(), 'user.changed', { subject: after.personId, detail });
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
 * Removes a person's passkeys, password and codes, ends their sessions, and creates a new link. This is meant for someone who has lost
 * their means of signing in, or for a person whose password or codes may be known to someone else. Throws `NOT_FOUND`, `CONFIG_INVALID` or
 * `ROW_CHANGED`.
 */
export const resetPerson = localOperation({
  action: 'resetPerson',
  command: 'user reset',
  does: "remove all of a user's sign-in methods, end their sessions, and create a new invitation link",
  by: BY,
  input: Type.Object({ person: person() }),
  run: async (deps: InviteDeps, actor, { person }): Promise<InvitedView> => {
    return deps.db.transaction(async (tx) => {
      const found = await selectLocked(tx, person, lockPersonToChange);
      // Anyone with the link can act as that person.
      refuseBeyond(actor, { ...found, ...ENDLESS });
      await forgetFactors(tx, found, deps.now(), { isGone: false });
      const link = await makeLink(tx, deps, { personId: found.id, kind: 'reset' });
      const view = viewPerson(found);
      const detail = { login: found.login, role: found.role };
      await recordAction(tx, actor, deps.now(), 'user.reset', { subject: view.personId, detail });
      return { ...view, ...link };
    });
  },
  print: printLink,
});

/**
 * Removes a person permanently, with all their means of signing in, even if someone else forged the row. Their actions stay in the audit
 * log. Throws `NOT_FOUND` or `CONFLICT`.
 */
export const removePerson = localOperation({
  action: 'removePerson',
  command: 'user remove',
  does: 'remove a user permanently, and end their sessions',
  by: BY,
  input: Type.Object({ person: person() }),
  run: async ({ db, now }: Pick<OperationDeps, 'db' | 'now'>, actor, { person }) => {
    return db.transaction(async (tx) => {
      // This also finds a person whose row was forged, because everything will be removed from it.
      const found = await selectLocked(tx, person, lockAnyPerson);
      await keepAnOwner(tx, found);
      await forgetFactors(tx, found, now(), { isGone: true });
      const { personId, login, role } = viewPerson(found);
      await recordAction(tx, actor, now(), 'user.removed', { subject: personId, detail: { login, role } });
      return { personId, login, status: 'removed' };
    });
  },
  print: ({ login }) => ({ text: `removed ${login}` }),
});

export const operations = [invitePerson, listPeople, changeRole, resetPerson, removePerson];
