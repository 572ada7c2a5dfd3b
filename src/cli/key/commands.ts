import type { Command } from '@commander-js/extra-typings';
import { collect, PROJECT_OPTION, type Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function addKeyCommands(program: Command, terminal: Terminal, print: Print): void {
  const group = program.command('key').description('secret keys of the API');
  group
    .command('create')
    .description('make a secret key and show it, once')
    .option(...PROJECT_OPTION)
    .option('--name <name>', 'what you call it, 1 to 100 characters', 'default')
    .option('--expires <when>', 'a duration (12h, 90d) or a date (2027-01-31, UTC); else never')
    .option('--allow-ip <cidr…>', 'IP addresses or CIDR blocks that may use it; else all', collect)
    .option(
      '--scopes <scope…>',
      'what it may do, of create, read, events, webhooks; else all of these but webhooks',
      collect,
    )
    .action(async ({ project: projectId, allowIp: allowedIps, ...input }) =>
      print((await import('./key.ts')).printNewKey(terminal, { ...input, projectId, allowedIps })),
    );
  group
    .command('list')
    .description('list keys, without their secrets')
    .option(...PROJECT_OPTION)
    .action(async ({ project: projectId }) => print((await import('./key.ts')).printKeys(terminal, { projectId })));
  group
    .command('revoke')
    .description('revoke a key at once and for ever')
    .argument('<keyId>', 'key_…')
    .action(async (keyId) => print((await import('./key.ts')).printRevokedKey(terminal, keyId)));
}
