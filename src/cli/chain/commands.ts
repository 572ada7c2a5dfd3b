import type { Command } from '@commander-js/extra-typings';
import { collect, NETWORK_OPTION, type Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

const FROM_OPTION = ['--from <block>', 'the first block'] as const;
const TO_OPTION = ['--to <block>', 'the last block, where the ledger stands or below; at most 100,000 blocks'] as const;

export function addChainCommands(program: Command, terminal: Terminal, print: Print): void {
  const group = program.command('chain').description('what the service knows of the chain, and whether it is right');
  group
    .command('status')
    .description('where the service stands, how its nodes are, and which alarms are open')
    .option(...NETWORK_OPTION)
    .action(async (options) => print((await import('./chain.ts')).printStatus(terminal, options)));
  group
    .command('rescan')
    .description('read blocks again and record what the ledger missed; harmless to repeat')
    .requiredOption(...FROM_OPTION)
    .requiredOption(...TO_OPTION)
    .option(...NETWORK_OPTION)
    .action(async (options) => print((await import('./range.ts')).printRescanned(terminal, options)));
  group
    .command('verify')
    .description('read blocks again and compare them with the ledger; changes nothing, exits 1 on a difference')
    .requiredOption(...FROM_OPTION)
    .requiredOption(...TO_OPTION)
    .option(...NETWORK_OPTION)
    .action(async (options) => print((await import('./range.ts')).printVerified(terminal, options)));
  addDecisions(group, terminal, print);
  group
    .command('resume')
    .description('let a watcher go on that stopped because the chain contradicted the ledger')
    .option('--yes', 'you know the reason and settled it')
    .option('--reason <text>', 'with --yes: why it may go on, for the record')
    .option(...NETWORK_OPTION)
    .action(async (options) => print((await import('./chain.ts')).printResumed(terminal, options)));
  group
    .command('acknowledge')
    .description('close alarms that tell of something that happened once, when you have read them')
    .requiredOption(
      '--alarm <kind>',
      'contract-event, funds-destroyed, unproven-block, payment-denied, database-restored, database-promoted, address-change-failed, row-changed, rows-missing or audit-broken; every other ends when its cause does',
    )
    .option('--subject <subject>', 'only the one about this, as "quittance chain status --json" shows it')
    .option(...NETWORK_OPTION)
    .action(async (options) => print((await import('./chain.ts')).printAcknowledged(terminal, options)));
  group
    .command('producers')
    .description('who may make blocks: every change, when, why, and which nodes said so')
    .option('--accept', 'take over the producers that the nodes name now, although more changed than a vote can')
    .option('--yes', 'with --accept: you know that the network changed so much')
    .option(...NETWORK_OPTION)
    .action(async ({ accept, ...options }) => {
      const { printAcceptedProducers, printProducers } = await import('./chain.ts');
      await print(accept === true ? printAcceptedProducers(terminal, options) : printProducers(terminal, options));
    });
  group
    .command('checkpoint')
    .description('where the ledger stands, with its producers, as a release ships it for first starts; for maintainers')
    .option('--check <file>', 'examine that of a file by the nodes and the ledger here; exits 1 if it is not good')
    .option(...NETWORK_OPTION)
    .action(async ({ check, ...options }) => {
      const { printCheckedCheckpoint, printCheckpoint } = await import('./checkpoint.ts');
      await print(
        check === undefined ? printCheckpoint(terminal, options) : printCheckedCheckpoint(terminal, check, options),
      );
    });
}

const BY_OPTION = ['--by <name>', 'who decided it, for the record; else your user name'] as const;

/** Adds the commands for decisions that only a person can make. Each is recorded with the person and the reason. */
function addDecisions(group: Command, terminal: Terminal, print: Print): void {
  group
    .command('repair')
    .description('show where the ledger is not what the chain is; with --yes, take back what the chain denies')
    .requiredOption(...FROM_OPTION)
    .requiredOption(...TO_OPTION)
    .option('--yes', 'change the ledger: what the chain denies counts no more, what was missing is recorded')
    .option('--reason <text>', 'with --yes: why, for the record')
    .option('--invoice <inv_…>', 'an invoice that is PAID by what the chain denies, each of them', collect)
    .option(...BY_OPTION)
    .option(...NETWORK_OPTION)
    .action(async (options) => print((await import('./range.ts')).printRepaired(terminal, options)));
  group
    .command('pass')
    .description('let the next block pass that no node can prove; shows first what it holds and who says so')
    .requiredOption('--block <number>', 'the block at which the ledger stands still')
    .requiredOption('--reason <text>', 'why, for the record')
    .option('--id <block-id>', 'the block that you compared, 64 hexadecimal characters')
    .option('--yes', 'you have compared what the nodes show with another source')
    .option(...BY_OPTION)
    .option(...NETWORK_OPTION)
    .action(async (options) => print((await import('./pass.ts')).printPassed(terminal, options)));
}
