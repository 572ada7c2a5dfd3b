import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { delimiter, join } from 'node:path';

/** `npm run check`: everything that must pass beside the tests. At once, for most of them keep one processor busy. */
const CHECKS = [
  'tsc',
  'npm run --silent measure -- --check',
  'depcruise --config .dependency-cruiser.cjs src packages/tron/src packages/devnet/src packages/sdk/src bin build test bench deploy',
  'knip',
  'biome ci --error-on-warnings .',
];

/** Of this checkout, whoever starts this and from wherever. */
const BIN = ['../node_modules/.bin', '../test/node_modules/.bin'].map((path) => join(import.meta.dirname, path));
const env = { ...process.env, PATH: [...BIN, process.env['PATH']].join(delimiter) };

async function run(command) {
  const child = spawn(command, { shell: true, stdio: ['ignore', 'pipe', 'pipe'], env });
  const output = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => output.push(chunk));
  const [code] = await once(child, 'close');
  process.stdout.write(Buffer.concat(output));
  return code;
}

const codes = await Promise.all(CHECKS.map(run));
process.exitCode = codes.every((code) => code === 0) ? 0 : 1;
