import { type Command, Option } from '@commander-js/extra-typings';
import { ROLES } from '../../operator/actor.ts';
import { collect, type Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function addAdminKeyCommands(program: Command, terminal: Terminal, print: Print): void {
  const group = program.command('admin-key').description('keys of the admin API, for --server and for programs');
  group
    .command('create')
    .description('make a key and show it, once')
    .requiredOption('--name <name>', 'who or what it is for, 1 to 100 characters; recorded with what it does')
    .addOption(new Option('--role <role>', 'what it may do').choices(ROLES).makeOptionMandatory())
    .option('--projects <prj_…>', 'only these, several separated by commas; else all', collect)
    .option('--expires <when>', 'a duration (12h, 90d) or a date (2027-01-31, UTC); else never')
    .option('--allow-ip <cidr…>', 'IP addresses or CIDR blocks that may use it; else all', collect)
    .action(async ({ allowIp: allowedIps, ...input }) =>
      print((await import('./admin-key.ts')).printNewAdminKey(terminal, { ...input, allowedIps })),
    );
  group
    .command('list')
    .description('list keys, without their secrets')
    .action(async () => print((await import('./admin-key.ts')).printAdminKeys(terminal)));
  group
    .command('revoke')
    .description('revoke a key at once and for ever')
    .argument('<adminKeyId>', 'adm_…')
    .action(async (adminKeyId) => print((await import('./admin-key.ts')).printRevokedAdminKey(terminal, adminKeyId)));
}
