import { JSON_OPTION, programOf, runProgram } from '../terminal/run-program.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';
import { addKeyCommand, addSignCommand } from './sign-commands.ts';

/** The single file manifest-sign.mjs, for a machine without the rest of Quittance: `build/signer.js` makes it of this module. */
process.exitCode = await runProgram(process.argv.slice(2), process, (terminal) => createSigner(terminal));

function createSigner(terminal: Terminal) {
  const print = async (result: Promise<Result>) => terminal.print(await result);
  const program = programOf('manifest-sign.mjs', terminal).description(
    'Signs address manifests of Quittance. It reads and writes only the files that it is given.',
  );
  program.option(...JSON_OPTION);
  addKeyCommand(program, terminal, print);
  addSignCommand(program, terminal, print);
  program
    .command('show')
    .description('what a draft or a manifest says, and who signed it')
    .argument('<file>', 'the draft, or the manifest')
    .option('--keys <keys>', 'as QUITTANCE_MANIFEST_KEYS has them; exits 1 unless enough of them signed it')
    .action(async (file, options) => print((await import('./show.ts')).printShown(file, options)));
  return program;
}
