import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { delimiter, join } from 'node:path';

/** What `npm run check` runs: all that must pass besides the tests. They run at once, because most of them keep one core busy. */
const CHECKS = [
  'tsc',
  'npm run --silent measure -- --check',
  'depcruise --config .dependency-cruiser.cjs src packages/tron/src packages/devnet/src packages/sdk/src bin build test bench deploy',
  'knip',
  'biome ci --error-on-warnings .',
];

/** The tools of this checkout, from whatever directory this is started. */
const BIN = ['../node_modules/.bin', '../test/node_modules/.bin'].map((path) => join(import.meta.dirname, path));
const env = { ...process.env, PATH: [...BIN, process.env['PATH']].join(delimiter) };

/** Runs a command with those tools; `node build/check.js "biome check --write ."` runs only that one. */
async function run(command) {
  const child = spawn(command, { shell: true, stdio: ['ignore', 'pipe', 'pipe'], env });
  const output = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => output.push(chunk));
  const [code] = await once(child, 'close');
  process.stdout.write(Buffer.concat(output));
  return code;
}

const named = process.argv.slice(2);
const codes = await Promise.all((named.length > 0 ? named : CHECKS).map(run));
process.exitCode = codes.every((code) => code === 0) ? 0 : 1;
