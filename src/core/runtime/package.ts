import { existsSync, readFileSync } from 'node:fs';

/** The folder that contains package.json: the nearest one above this file, both in the sources and in the build. */
export const PACKAGE_ROOT = rootAbove(new URL('.', import.meta.url));

function rootAbove(folder: URL): URL {
  if (existsSync(new URL('package.json', folder))) return folder;
  const above = new URL('..', folder);
  if (above.href === folder.href) throw new Error(`no package.json above ${import.meta.url}`);
  return rootAbove(above);
}

/** Returns this release's version from package.json. */
export function readVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('package.json', PACKAGE_ROOT), 'utf8'));
  return String(version);
}
