import { Readable, Writable } from 'node:stream';
import { createTerminal, type Surroundings, type Terminal } from '../../src/cli/terminal/terminal.ts';

export type Recording = Surroundings & {
  /** The output so far. */
  readonly written: { stdout: string; stderr: string };
};

type Options = { env?: NodeJS.ProcessEnv; stdin?: NodeJS.ReadableStream | string; isTTY?: boolean };

/** Creates the surroundings of a command in this process and records its output. `stdin` is empty by default. */
export function recordSurroundings({ env = {}, stdin = '', isTTY = false }: Options = {}): Recording {
  const written = { stdout: '', stderr: '' };
  const record = (name: keyof typeof written) =>
    new Writable({
      decodeStrings: false,
      write: (chunk, _encoding, done) => {
        written[name] += chunk;
        done();
      },
    });
  return {
    env,
    stdin: typeof stdin === 'string' ? Readable.from([stdin]) : stdin,
    stdout: Object.assign(record('stdout'), { isTTY }),
    stderr: record('stderr'),
    written,
  };
}

/** Creates a terminal for part of a command in this process. */
export function recordTerminal({ json = false, ...options }: Options & { json?: boolean } = {}): Terminal & Recording {
  const surroundings = recordSurroundings(options);
  return { ...createTerminal(surroundings, { json }), written: surroundings.written };
}
