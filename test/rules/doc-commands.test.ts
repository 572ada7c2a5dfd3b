import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from '@commander-js/extra-typings';
import { expect, test } from 'vitest';
import { addCommands } from '../../src/cli/main.ts';
import type { Terminal } from '../../src/cli/terminal/terminal.ts';

const ROOT = join(import.meta.dirname, '../..');
/** History pages keep the names of former commands. */
const PAGES = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.md') && !/decisions|measurements/.test(name))
  .map((name) => `docs/${name}`)
  .concat('README.md', 'SECURITY.md');

const program = new Command('quittance').option('--json').option('--server <url>').option('--help').option('--version');
// Only actions use the terminal.
await addCommands(program as Command, {} as Terminal, () => true);

/** At the beginning of a line, after variables or `sudo`, or in `$(…)`. */
const CALL =
  /(?:^ *|\$\(|\| |&& )(?:sudo |[A-Z_]+=\S+ +)*(?:npm run (?:--silent )?quittance --|quittance) ([a-z][^#|&>)]*)/g;

/** Finds calls of `quittance` in code blocks and inline code, without shell syntax: `quittance key create --scopes create,read`. */
function callsOf(text: string): string[] {
  const code = [...text.matchAll(/^ *```(?:sh|bash|text)\n([\s\S]*?)^ *```/gm)].flatMap(([, block = '']) =>
    block.replaceAll('\\\n', ' ').split('\n'),
  );
  const inline = [...text.replace(/^ *```[\s\S]*?^ *```/gm, '').matchAll(/`([^`\n]+)`/g)].map(
    ([, words = '']) => words,
  );
  return [...code, ...inline].flatMap((line) => [...line.matchAll(CALL)].map(([, call = '']) => call.trim()));
}

/** Returns the mistake in a call, or null. */
function faultOf(call: string): string | null {
  const [first, ...others] = call.replace(/"[^"]*"|'[^']*'/g, 'x').split(/\s+/);
  let command: Command | undefined = program.commands.find((each) => each.name() === first) as Command | undefined;
  if (command === undefined) return `no command ${first}`;
  const [second = ''] = others;
  const below = command.commands.find((each) => each.name() === second) as Command | undefined;
  if (below !== undefined) command = below;
  else if (command.commands.length > 0 && command.options.length === 0 && /^[a-z]/.test(second))
    return `no command ${first} ${second}`;
  const known = [...command.options, ...program.options].flatMap(({ long }) => [long]);
  const unknown = others.filter((word) => /^--[a-z]/.test(word)).filter((word) => !known.includes(word));
  return unknown.length === 0 ? null : `${command.name()} has no ${unknown.join(', ')}`;
}

test('every command that the documents show is one, with options that it has', () => {
  const calls = PAGES.flatMap((page) =>
    callsOf(readFileSync(join(ROOT, page), 'utf8')).map((call) => ({ page, call })),
  );
  expect(calls.length).toBeGreaterThan(300);
  const faults = calls
    .map(({ page, call }) => ({ page, call, fault: faultOf(call) }))
    .filter(({ fault }) => fault !== null);
  expect(faults).toEqual([]);
});

test('a command and an option that there are not are found', () => {
  expect(faultOf('adress list')).toBe('no command adress');
  expect(faultOf('address lst')).toBe('no command address lst');
  expect(faultOf('address add --fresh --quick T…')).toBe('add has no --quick');
});
