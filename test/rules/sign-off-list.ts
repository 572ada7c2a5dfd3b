import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const GUIDE = join(import.meta.dirname, '../../docs/contributing/audit-guide.md');

/** Returns the files that an auditor signs off, in the reading order of the audit guide. */
export function signOffList(): string[] {
  return [...readFileSync(GUIDE, 'utf8').matchAll(/^\d+\. `([^`]+)`/gm)].map(([, path = '']) => path);
}
