import type { Command } from '@commander-js/extra-typings';
import type { Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function addSessionCommands(program: Command, terminal: Terminal, print: Print): void {
  const group = program.command('session').description('who is signed in to the console');
  group
    .command('list')
    .description('list sessions that go on, the last used first')
    .option('--user <login>', 'only those of this person: the login, or usr_…')
    .action(async ({ user: person }) => print((await import('./session.ts')).printSessions(terminal, { person })));
  group
    .command('end')
    .description('end a session at once')
    .argument('<sessionId>', 'ses_…')
    .option('--by <name>', 'who does this, for the record; else your user name')
    .action(async (sessionId, options) =>
      print((await import('./session.ts')).printEndedSession(terminal, { sessionId, ...options })),
    );
}
