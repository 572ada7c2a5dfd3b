import { formatFields } from '../../operator/command-text.ts';
import { changeRole, removePerson, resetPerson } from '../../operator/people/change-person.ts';
import { invitePerson } from '../../operator/people/invite-person.ts';
import { listPeople } from '../../operator/people/list-people.ts';
import { readNewPerson, readRights } from '../../operator/people/read-person.ts';
import type { InvitedView, PersonView } from '../../operator/people/views.ts';
import { cliActor } from '../terminal/operator.ts';
import { type Column, tableOf } from '../terminal/table.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';
import { type CommandDatabase, withDatabase } from '../terminal/with-database.ts';

type By = { by?: string | undefined };
type Person = By & { person: string };

const withConsole = ({ config, ...deps }: CommandDatabase) => ({ ...deps, consoleUrl: config.consoleUrl });

export async function printInvited(
  terminal: Terminal,
  { by, ...input }: By & Parameters<typeof readNewPerson>[0],
): Promise<Result> {
  const person = readNewPerson(input);
  return showLink(
    await withDatabase(terminal, (deps) => invitePerson(withConsole(deps), cliActor(terminal, by), person)),
  );
}

export async function printReset(terminal: Terminal, { by, ...input }: Person): Promise<Result> {
  return showLink(
    await withDatabase(terminal, (deps) => resetPerson(withConsole(deps), cliActor(terminal, by), input)),
  );
}

function showLink(data: InvitedView): Result {
  return {
    data,
    text: formatFields(LINK.map(([name, cell]) => [name, cell(data)])),
    next: 'the link is shown only now: give it to that person alone, by a way that nobody else reads',
  };
}

const rightsOf = ({ role, projects }: Pick<PersonView, 'role' | 'projects'>) => ({
  role,
  projects: projects?.join(', ') ?? 'all',
});

const LINK: readonly Column<InvitedView>[] = [
  ['person', ({ personId }) => personId],
  ['login', ({ login }) => login],
  ['role', ({ role }) => role],
  ['projects', (view) => rightsOf(view).projects],
  ['link', ({ link }) => link],
  ['ends', ({ expiresAt }) => expiresAt],
];

export async function printPeople(terminal: Terminal): Promise<Result> {
  const data = await withDatabase(terminal, (deps) => listPeople(deps, cliActor(terminal)));
  return {
    data,
    text: tableOf(PEOPLE, data.data),
    ...(data.data.length === 0
      ? { next: 'nobody yet: make the first link with "quittance user invite --role owner <login>"' }
      : {}),
  };
}

const PEOPLE: readonly Column<PersonView>[] = [
  ['LOGIN', ({ login }) => login],
  ['ROLE', ({ role }) => role],
  ['PROJECTS', (view) => rightsOf(view).projects],
  ['SIGNS IN WITH', (view) => factorsOf(view)],
  ['LAST SEEN', ({ seenAt }) => seenAt ?? 'never'],
  ['PERSON', ({ personId }) => personId],
  ['NAME', ({ name }) => name],
];

function factorsOf({ passkeys, hasPassword, recoveryCodes, invitedUntil }: PersonView): string {
  const factors = [
    passkeys === 0 ? '' : `${passkeys} passkey${passkeys === 1 ? '' : 's'}`,
    hasPassword ? `password and code (${recoveryCodes} recovery codes)` : '',
  ].filter((each) => each !== '');
  return factors.join(', ') || (invitedUntil === null ? 'nothing' : `nothing, invited until ${invitedUntil}`);
}

export async function printChangedRole(
  terminal: Terminal,
  { by, person, ...input }: Person & Parameters<typeof readRights>[0],
): Promise<Result> {
  const rights = readRights(input);
  const data = await withDatabase(terminal, (deps) => changeRole(deps, cliActor(terminal, by), { person, ...rights }));
  const { login, role, endedSessions } = data;
  return {
    data,
    text: formatFields([
      ['login', login],
      ['role', role],
      ['projects', rightsOf(data).projects],
      ['sessions ended', String(endedSessions)],
    ]),
  };
}

export async function printRemoved(terminal: Terminal, { by, ...input }: Person): Promise<Result> {
  const data = await withDatabase(terminal, (deps) => removePerson(deps, cliActor(terminal, by), input));
  return { data, text: `removed ${data.login}` };
}
