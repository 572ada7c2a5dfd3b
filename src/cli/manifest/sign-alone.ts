import { JSON_OPTION, programOf, type Result, runProgram, type Terminal } from '../terminal/terminal.ts';
import { addKeyCommand, addSignCommand } from './sign-commands.ts';

/** `build/signer.js` bundles this module into the single file manifest-sign.mjs, for a machine without the rest of Quittance. */
process.exitCode = await runProgram(process.argv.slice(2), process, (terminal) => createSigner(terminal));

function createSigner(terminal: Terminal) {
  const print = async (result: Promise<Result | null>) => terminal.print(await result);
  const program = programOf('manifest-sign.mjs', terminal).description(
    'Sign Quittance address manifests. This program reads and writes only the files you name.',
  );
  program.option(...JSON_OPTION);
  addKeyCommand(program, terminal, print);
  addSignCommand(program, terminal, print);
  program
    .command('show')
    .description('show the content and the signers of a draft or manifest')
    .argument('<file>', 'draft or manifest file')
    .option('--keys <keys>', 'pinned keys, as in QUITTANCE_MANIFEST_KEYS; exits 1 unless enough of them signed it')
    .action(async (file, options) => print((await import('./sign.ts')).printShown(file, options)));
  return program;
}
