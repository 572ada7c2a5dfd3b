// Runs the command with the settings of /etc/quittance/env. What already stands in the environment goes before them.
import { readFileSync } from 'node:fs';
import { parseEnvironment } from './parse-environment.js';

const FILE = '/etc/quittance/env';
const DATA_DIR = '/var/lib/quittance';

/** What needs no setting works for everybody. */
const isHelp = /^(-h|--help|help|-V|--version)$/.test(process.argv.at(-1) ?? '');

for (const [name, value] of Object.entries({ QUITTANCE_DATA_DIR: DATA_DIR, ...settings() }))
  process.env[name] ??= value;
await import('../../bin/quittance.js');

function settings() {
  try {
    return parseEnvironment(readFileSync(FILE, 'utf8'));
  } catch (error) {
    if (error.code === 'ENOENT' || isHelp) return {};
    const problem =
      error.code === 'EACCES' ? 'only root and the user quittance may read it: run this with sudo' : error.message;
    console.error(`error: ${FILE}: ${problem}`);
    process.exit(2);
  }
}
