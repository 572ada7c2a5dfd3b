import { Readable, Writable } from 'node:stream';
import { createTerminal, type Surroundings, type Terminal } from '../../src/cli/terminal/terminal.ts';

export type Recording = Surroundings & {
  /** What was written so far. */
  readonly written: { stdout: string; stderr: string };
};

type Options = { env?: NodeJS.ProcessEnv; stdin?: NodeJS.ReadableStream | string; isTTY?: boolean };

/** Surroundings for a command in this process, of which a test sees what is written. `stdin` holds nothing, unless given. */
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

/** A terminal for a part of a command in this process. */
export function recordTerminal({ json = false, ...options }: Options & { json?: boolean } = {}): Terminal & Recording {
  const surroundings = recordSurroundings(options);
  return { ...createTerminal(surroundings, { json }), written: surroundings.written };
}
