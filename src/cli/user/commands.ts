import type { Command } from '@commander-js/extra-typings';
import { collect, type Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

const ROLE_OPTION = [
  '--role <role>',
  'viewer (reads), operator (decides about money that came) or owner (does all)',
] as const;
const PERSON_ARGUMENT = ['<login>', 'the login, or usr_…'] as const;
const BY_OPTION = ['--by <name>', 'who does this, for the record; else your user name'] as const;

export function addUserCommands(program: Command, terminal: Terminal, print: Print): void {
  const group = program.command('user').description('people who use the console');
  group
    .command('invite')
    .description('make a link by which a person chooses what it signs in with: once, within 15 minutes')
    .argument('<login>', 'an e-mail address or a short name')
    .requiredOption(...ROLE_OPTION)
    .option('--project <prj_…>', 'only these, several separated by commas; else all', collect)
    .option('--name <name>', 'what others see; else the login')
    .option(...BY_OPTION)
    .action(async (login, { project: projectIds, ...options }) =>
      print((await import('./user.ts')).printInvited(terminal, { login, projectIds, ...options })),
    );
  group
    .command('list')
    .description('list people, their roles, and what they sign in with')
    .action(async () => print((await import('./user.ts')).printPeople(terminal)));
  group
    .command('role')
    .description('give a person another role or other projects, and end all its sessions')
    .argument(...PERSON_ARGUMENT)
    .requiredOption(...ROLE_OPTION)
    .option('--project <prj_…>', 'only these, several separated by commas; else those as before', collect)
    .option('--all-projects', 'all projects, also those to come')
    .option(...BY_OPTION)
    .action(async (person, { project: projectIds, ...options }) =>
      print((await import('./user.ts')).printChangedRole(terminal, { person, projectIds, ...options })),
    );
  group
    .command('reset')
    .description('take from a person all that it signs in with, end its sessions, and make a new link')
    .argument(...PERSON_ARGUMENT)
    .option(...BY_OPTION)
    .action(async (person, options) => print((await import('./user.ts')).printReset(terminal, { person, ...options })));
  group
    .command('remove')
    .description('remove a person for ever, and end its sessions')
    .argument(...PERSON_ARGUMENT)
    .option(...BY_OPTION)
    .action(async (person, options) =>
      print((await import('./user.ts')).printRemoved(terminal, { person, ...options })),
    );
}
