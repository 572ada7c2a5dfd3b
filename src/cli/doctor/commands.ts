import type { Command } from '@commander-js/extra-typings';
import type { Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function addDoctorCommand(program: Command, terminal: Terminal, print: Print): void {
  program
    .command('doctor')
    .description('check the service and its surroundings in seconds, and say what to fix; exits 1 if a check fails')
    .action(async () => print((await import('./doctor.ts')).printDoctor(terminal)));
}
