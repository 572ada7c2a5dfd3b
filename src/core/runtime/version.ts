import { readFileSync } from 'node:fs';
import { PACKAGE_ROOT } from './package-root.ts';

/** Returns the version of this release, from package.json. */
export function readVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('package.json', PACKAGE_ROOT), 'utf8'));
  return String(version);
}
