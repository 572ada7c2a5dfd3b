import { type Command, Option } from '@commander-js/extra-typings';
import { NETWORK_CHOICE } from '../../domain/network.ts';
import { POLICIES } from '../../domain/policy.ts';
import { collect, type Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { addKeyCommand, addSignCommand } from './sign-commands.ts';

export function addManifestCommands(program: Command, terminal: Terminal, print: Print): void {
  const group = program
    .command('manifest')
    .description('manage the signed list of your addresses; payers never see an address outside it');
  addKeyCommand(group, terminal, print);
  group
    .command('draft')
    .description('write the addresses of the database to a draft for signing, and show what is new')
    .option('--output <file>', 'output file', 'addresses.draft')
    .option('--network <network>', `${NETWORK_CHOICE}, comma-separated (default: the main network)`, collect)
    .option('--reserve <count>', 'number of addresses of each account key to sign in advance', '100')
    .option('--days <count>', 'validity in days', '365')
    .option('--project <prj_…>', 'project for --add, --policy and --max-surcharge')
    .option('--add <T…>', 'addresses that you will add to the database later, comma-separated', collect)
    .addOption(new Option('--policy <policy>', 'with --project: policy that you will set later').choices(POLICIES))
    .option('--max-surcharge <usdt>', 'with --project: largest surcharge that you will set later')
    .option('--without <T…>', 'leave out these addresses of the database, which are not yours', collect)
    .action(async (options) => print((await import('./manifest.ts')).printDraft(terminal, options)));
  addSignCommand(group, terminal, print);
  group
    .command('install')
    .description('install a signed manifest; services use it within seconds, without a restart')
    .argument('<file>', 'file written by "quittance manifest sign"')
    .action(async (file) => print((await import('./manifest.ts')).printInstalled(terminal, file)));
  group
    .command('show')
    .description('show the content and the signers of a manifest')
    .argument('[file]', 'manifest file (default: the installed manifest)')
    .action(async (file) => print((await import('./manifest.ts')).printManifest(terminal, file)));
  group
    .command('verify')
    .description('verify a manifest with all its derived addresses; exits 1 unless enough pinned keys signed it')
    .argument('[file]', 'manifest file (default: the installed manifest)')
    .option('--keys <keys>', 'pinned keys, as in QUITTANCE_MANIFEST_KEYS, if that is not set here')
    .action(async (file, options) => print((await import('./manifest.ts')).printVerified(terminal, file, options)));
}
