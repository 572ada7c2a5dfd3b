import { type Command, Option } from '@commander-js/extra-typings';
import { POLICIES } from '../../domain/policy.ts';
import { PROJECT_OPTION, type Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

const BY_OPTION = ['--by <name>', 'who does this, for the record; else your user name'] as const;
const NOTE_OPTION = ['--note <text>', 'why, for the record'] as const;

export function addAddressCommands(program: Command, terminal: Terminal, print: Print): void {
  const group = program.command('address').description('receiving addresses of your own wallet; never keys');
  addAdditions(group, terminal, print);
  addChanges(group, terminal, print);
  group
    .command('list')
    .description('list the addresses with their policy and status')
    .option(...PROJECT_OPTION)
    .option('--after <position>', 'only those after this position; 10,000 are shown at once')
    .action(async (options) => print((await import('./list.ts')).printAddresses(terminal, options)));
  group
    .command('capacity')
    .description('how many payable amounts are free, and how long they last')
    .option(...PROJECT_OPTION)
    .option('--amount <usdt>', 'one amount, on each address; else the amounts in use')
    .action(async ({ project, amount }) => {
      const { printCapacity, printCapacityOfAmount } = await import('./capacity.ts');
      return print(
        amount === undefined ? printCapacity(terminal, project) : printCapacityOfAmount(terminal, project, amount),
      );
    });
  group
    .command('retire')
    .description('give addresses no new invoices; payments to them are watched for ever')
    .argument('<addresses...>', 'T…; "-" reads standard input')
    .option(...PROJECT_OPTION)
    .option(...BY_OPTION)
    .option(...NOTE_OPTION)
    .action(async (addresses, options) =>
      print((await import('./retire.ts')).printRetired(terminal, addresses, options)),
    );
  group
    .command('activate')
    .description('give addresses new invoices again that were retired or frozen')
    .argument('<addresses...>', 'T…; "-" reads standard input')
    .option(...PROJECT_OPTION)
    .option(...BY_OPTION)
    .option(...NOTE_OPTION)
    .action(async (addresses, options) =>
      print((await import('./retire.ts')).printActivated(terminal, addresses, options)),
    );
}

/** What was added by the console or the admin API, and waits. */
function addChanges(group: Command, terminal: Terminal, print: Print): void {
  group
    .command('pending')
    .description('additions by the console or the admin API that wait for another owner or for their time')
    .option(...PROJECT_OPTION)
    .action(async ({ project }) => print((await import('./pending.ts')).printPending(terminal, project)));
  group
    .command('confirm')
    .description('add the addresses of one that waits, at once')
    .argument('<change>', 'chg_…')
    .option(...BY_OPTION)
    .action(async (change, { by }) => print((await import('./pending.ts')).printConfirmed(terminal, change, by)));
  group
    .command('withdraw')
    .description('stop one that waits: its addresses are not added')
    .argument('<change>', 'chg_…')
    .option(...BY_OPTION)
    .action(async (change, { by }) => print((await import('./pending.ts')).printWithdrawn(terminal, change, by)));
}

function addAdditions(group: Command, terminal: Terminal, print: Print): void {
  const policyOption = () =>
    new Option('--policy <policy>', 'what they are used for, for life; else what the project uses now').choices(
      POLICIES,
    );
  group
    .command('add')
    .description('add addresses, all of them or, if one is wrong, none')
    .argument('[addresses...]', 'T…; "-" reads standard input as --file reads a file')
    .option(...PROJECT_OPTION)
    .option('--file <path>', 'a list (one address a line, # starts a comment) or CSV (its column "address")')
    .addOption(policyOption())
    .option('--no-check', 'do not ask the nodes whether the addresses were ever activated')
    .option('--fresh', 'after a restore: you know that Quittance never had any of them')
    .option(...BY_OPTION)
    .action(async (addresses, { project: projectId, file, policy, by, check: isChecked, fresh: isFresh = false }) =>
      print(
        (await import('./add.ts')).printAdded(terminal, addresses, { projectId, file, policy, by, isChecked, isFresh }),
      ),
    );
  group
    .command('derive')
    .description("add the next addresses of your wallet's account, from its public key (watch-only)")
    .option('--xpub <xpub>', "the public key of the account, m/44'/195'/0'; else the one the project has already")
    .option('--count <n>', 'how many to add, 1 to 1000')
    .option('--auto-limit <n>', 'how many may be added by themselves in all when amounts get scarce; 100 for a new key')
    .option('--first <address>', 'the first address that your wallet shows; asked for if it is not given')
    .option(...PROJECT_OPTION)
    .addOption(policyOption())
    .option('--fresh', 'after a restore: you know that Quittance never had this key, so begin with its first address')
    .option(...BY_OPTION)
    .action(async (options) => print((await import('./derive.ts')).printDerived(terminal, options)));
}
