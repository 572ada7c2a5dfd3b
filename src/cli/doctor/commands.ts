import type { Command } from '@commander-js/extra-typings';
import type { Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function addDoctorCommand(program: Command, terminal: Terminal, print: Print): void {
  program
    .command('doctor')
    .description(
      'look at everything around the service, in seconds, and say what to do; exits 1 if anything has failed',
    )
    .action(async () => print((await import('./doctor.ts')).printDoctor(terminal)));
}
