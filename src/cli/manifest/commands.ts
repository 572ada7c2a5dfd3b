import { type Command, Option } from '@commander-js/extra-typings';
import { POLICIES } from '../../domain/policy.ts';
import { collect, NETWORK_CHOICE, type Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

const PASSPHRASE_OPTION = ['--passphrase-file <file>', 'a file with the passphrase; else it is asked for'] as const;

export function addManifestCommands(program: Command, terminal: Terminal, print: Print): void {
  const group = program
    .command('manifest')
    .description('the signed list of your addresses: what it does not have is shown to nobody');
  group
    .command('key')
    .description('make a signing key, sealed by a passphrase; on a machine that is not the server')
    .argument('<file>', 'the new file for the key')
    .option(...PASSPHRASE_OPTION)
    .action(async (file, options) => print((await import('./sign.ts')).printNewKey(terminal, file, options)));
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
  group
    .command('sign')
    .description('look through a draft and sign it; needs no database and no network')
    .argument('<draft>', 'the file of "quittance manifest draft", or one that others have signed already')
    .option('--key <file>', 'the file of "quittance manifest key"')
    .option(...PASSPHRASE_OPTION)
    .option('--previous <file>', 'the manifest that you signed before; what differs is shown')
    .option('--head <file>', 'instead of a key: write what "ssh-keygen -Y sign" signs')
    .option('--signature <file>', 'instead of a key: take what "ssh-keygen -Y sign" wrote')
    .option('--output <file>', 'the file to write', 'addresses.manifest')
    .option('--yes', 'you have seen what changes')
    .action(async (draft, options) => print((await import('./sign.ts')).printSigned(terminal, draft, options)));
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
