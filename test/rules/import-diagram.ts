import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../..');
const PROGRAM = 'test/node_modules/dependency-cruiser/bin/dependency-cruise.mjs';

/**
 * Returns the imports between the parts of the program as a Mermaid flowchart. `npm run diagram` prints it for
 * docs/contributing/architecture.md.
 */
export function importDiagram(): string {
  const args = [
    resolve(ROOT, PROGRAM),
    ...[
      '--config',
      resolve(ROOT, '.dependency-cruiser.cjs'),
      '--include-only',
      '^(src|packages)/',
      '--exclude',
      '\\.test\\.ts$',
    ],
    ...[
      '--collapse',
      '^(src/(core|faces|server|developer|cli)|packages/[^/]+)',
      '--output-type',
      'mermaid',
      'src',
      'packages',
    ],
  ];
  return execFileSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' }).trim();
}

if (process.argv[1] === import.meta.filename) process.stdout.write(`${importDiagram()}\n`);
