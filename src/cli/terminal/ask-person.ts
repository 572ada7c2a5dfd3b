import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { AppError, invalidArgument } from '../../core/domain/errors.ts';
import type { Terminal } from './terminal.ts';

/** Whether a person is at the terminal and can be asked. */
export function hasPerson({ stdin }: Terminal): boolean {
  return 'isTTY' in stdin && stdin.isTTY === true;
}

/** Asks for a line and trims it. Returns `null` at the end of the input or after Ctrl-C. */
export async function askPerson(terminal: Terminal, question: string): Promise<string | null> {
  return ask(createInterface({ input: terminal.stdin, output: terminal.stderr }), question);
}

/** A person confirms by typing "yes" at the terminal; elsewhere, `--yes` is required. `nothing` says what wasn't done. */
export async function confirm(
  terminal: Terminal,
  { question, nothing, advice = 'confirm' }: { question: string; nothing: string; advice?: string },
): Promise<void> {
  if (!hasPerson(terminal)) throw invalidArgument`${nothing}: ${advice} with --yes, or run this in a terminal`;
  if ((await askPerson(terminal, question)) !== 'yes') throw new AppError('INVALID_ARGUMENT', nothing);
}

/** Asks for a secret without showing what is typed. */
export async function askSecret(terminal: Terminal, question: string): Promise<string | null> {
  terminal.stderr.write(question);
  const output = new Writable({ write: (_chunk, _encoding, done) => done() });
  const typed = await ask(createInterface({ input: terminal.stdin, output, terminal: true }), '');
  terminal.stderr.write('\n');
  return typed;
}

async function ask(lines: ReturnType<typeof createInterface>, question: string): Promise<string | null> {
  const ended = once(lines, 'close').then(() => null);
  try {
    return (await Promise.race([lines.question(question).catch(unlessAborted), ended]))?.trim() ?? null;
  } finally {
    lines.close();
  }
}

/** In a terminal, Ctrl-C and Ctrl-D reject the question. */
function unlessAborted(error: Error): null {
  if (error.name === 'AbortError') return null;
  throw error;
}
