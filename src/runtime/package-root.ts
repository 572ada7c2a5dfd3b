/** The folder of package.json: two folders above this file, in the sources and in the build. */
export const PACKAGE_ROOT = new URL('../../', import.meta.url);
