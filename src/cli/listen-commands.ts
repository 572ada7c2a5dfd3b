import type { Command } from 'commander';
import type { ListenOptions } from './listen/settings.ts';
import { collect } from './option-parts.ts';
import type { Terminal } from './terminal.ts';

export function addListenCommands(program: Command, terminal: Terminal): void {
  program
    .command('listen')
    .description('forward the events of a test project to a server on your machine, signed as webhooks are')
    .option('--forward-to <url>', 'where to, such as http://localhost:3000/hook')
    .option('--server <url>', 'the Quittance server; else QUITTANCE_SERVER, else the sandbox of this data directory')
    .option('--api-key <key>', 'qt_test_…; others on this machine can see it, so rather set QUITTANCE_API_KEY')
    .option('--events <types…>', 'only these types, separated by commas', collect)
    .option('--after <where>', 'begin after an event (evt_…), at the beginning, or with the latest: only new ones')
    .option('--print-secret', 'print the signing secret that belongs to the key, and end')
    .option('--allow-http', 'speak http:// to a server on another machine, which shows the key to the network')
    .addHelpText('after', '\nWith --json each line is one object. It begins where it ended the last time.')
    .action(async (options: ListenOptions) => (await import('./listen/run.ts')).runListen(terminal, options));
}
