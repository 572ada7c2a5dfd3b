import { readFileSync } from 'node:fs';

/** The version of this release, from the package.json two folders up in the source and in the build alike. */
export function readVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  return String(version);
}
