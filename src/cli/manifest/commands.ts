import { type Command, Option } from '@commander-js/extra-typings';
import { NETWORK_CHOICE } from '../../domain/network.ts';
import { POLICIES } from '../../domain/policy.ts';
import { collect, type Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { addKeyCommand, addSignCommand } from './sign-commands.ts';

export function addManifestCommands(program: Command, terminal: Terminal, print: Print): void {
  const group = program
    .command('manifest')
    .description('the signed list of your addresses: what it does not have is shown to nobody');
  addKeyCommand(group, terminal, print);
  group
    .command('draft')
    .description('write down the addresses of the database for somebody to sign, and say what is new')
    .option('--output <file>', 'the file to write', 'addresses.draft')
    .option('--network <network>', `${NETWORK_CHOICE}, several separated by commas; else the main network`, collect)
    .option('--reserve <count>', 'addresses of each account key that are signed before they are derived', '100')
    .option('--days <count>', 'how long it is good, in days', '365')
    .option('--project <prj_…>', 'with --add, --policy and --max-surcharge: the project that gets them')
    .option('--add <T…>', 'addresses that you add to the database later, several separated by commas', collect)
    .addOption(new Option('--policy <policy>', 'with --project: the policy that you set later').choices(POLICIES))
    .option('--max-surcharge <usdt>', 'with --project: the largest surcharge that you set later')
    .option('--without <T…>', 'addresses of the database that are not yours', collect)
    .action(async (options) => print((await import('./manifest.ts')).printDraft(terminal, options)));
  addSignCommand(group, terminal, print);
  group
    .command('install')
    .description('put a signed manifest in force; services take it within seconds, without a restart')
    .argument('<file>', 'the file of "quittance manifest sign"')
    .action(async (file) => print((await import('./manifest.ts')).printInstalled(terminal, file)));
  group
    .command('show')
    .description('what a manifest says, and who signed it')
    .argument('[file]', 'else the one in force')
    .action(async (file) => print((await import('./manifest.ts')).printManifest(terminal, file)));
  group
    .command('verify')
    .description('the same with every derived address; exits 1 unless enough pinned keys signed it')
    .argument('[file]', 'else the one in force')
    .option('--keys <keys>', 'as QUITTANCE_MANIFEST_KEYS has them, for a machine without')
    .action(async (file, options) => print((await import('./manifest.ts')).printVerified(terminal, file, options)));
}
