import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { toIso, type UnixMs } from '../../domain/time.ts';
import { syncDirectory, writePrivateFile } from '../../runtime/private-file.ts';

/**
 * `quittance-000012-20261124T030000Z.backup` was verified, and `….backup.sha256` beside it says how it was then, as `sha256sum -c` reads it.
 * The number says which is newer, for clocks go back. What is not verified yet has another name, so nobody takes it for a backup.
 */
export type KeptBackup = { name: string; number: number; writtenAtMs: number };

const KEPT = /^quittance-(\d{6,12})-\d{8}T\d{6}Z\.backup$/;
const DIGEST = /^(quittance-\d{6,12}-\d{8}T\d{6}Z\.backup)\.sha256$/;
const UNVERIFIED_END = '.unverified';
const UNVERIFIED = /^quittance-(\d{6,12})-\d{8}T\d{6}Z\.backup\.unverified$/;
/** What is written when a process is killed. */
const DRAFT = /^quittance-\d{6,12}-\d{8}T\d{6}Z\.backup\.(unverified\.\d+|sha256)\.draft$/;

export const isUnverified = (path: string): boolean => path.endsWith(UNVERIFIED_END);

/** The path that it has, or will have, as a backup. */
export const nameWhenVerified = (path: string): string =>
  isUnverified(path) ? path.slice(0, -UNVERIFIED_END.length) : path;

/** Whether a file is as its digest beside it says; `null`: there is none. Errors: those of the file system. */
export async function isAsDigestSays(path: string): Promise<boolean | null> {
  const told = await readFile(`${path}.sha256`, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  return told === null ? null : told === `${await digestOf(path)}  ${basename(path)}\n`;
}

export type BackupDirectory = {
  /** Newest first. Errors: those of the file system. */
  list(): Promise<KeptBackup[]>;
  /** The path for the next backup while it is not verified. What killed processes left half written goes. */
  begin(now: UnixMs): Promise<string>;
  /** What was written and not verified before this one goes. */
  removeOthers(path: string): Promise<void>;
  /** It was verified: it gets its name, and its digest beside it. */
  keep(path: string): Promise<KeptBackup>;
  /** Deletes what is older than the newest `count`. Of those only what is as it was when it was verified; the names of the others. */
  removeOld(count: number): Promise<string[]>;
};

/** The directory is never made: where it is gone, a disk is not mounted. One process works with it at a time. */
export function openBackupDirectory(directory: string): BackupDirectory {
  const pathOf = (name: string) => join(directory, name);
  const remove = async (names: readonly string[]) => {
    for (const name of names) await rm(pathOf(name), { force: true });
  };
  const list = async () => {
    const names = await readdir(directory);
    const kept: KeptBackup[] = [];
    for (const name of names) {
      const number = KEPT.exec(name)?.[1];
      if (number === undefined || !names.includes(`${name}.sha256`)) continue;
      kept.push({ name, number: Number(number), writtenAtMs: (await stat(pathOf(name))).mtimeMs });
    }
    return kept.sort((a, b) => b.number - a.number || b.name.localeCompare(a.name));
  };
  return {
    list,
    begin: async (now) => {
      const names = await readdir(directory);
      const orphans = names.filter((name) => !names.includes(DIGEST.exec(name)?.[1] ?? name));
      await remove([...names.filter((name) => DRAFT.test(name)), ...orphans]);
      const numbers = names.map((name) => Number((KEPT.exec(name) ?? UNVERIFIED.exec(name))?.[1] ?? 0));
      const number = String(Math.max(0, ...numbers) + 1).padStart(6, '0');
      const time = toIso(now)
        .replace(/\.\d+Z$/, 'Z')
        .replace(/[:-]/g, '');
      return pathOf(`quittance-${number}-${time}.backup${UNVERIFIED_END}`);
    },
    removeOthers: async (path) => {
      const names = await readdir(directory);
      await remove(names.filter((name) => UNVERIFIED.test(name) && pathOf(name) !== path));
    },
    keep: async (path) => {
      const target = nameWhenVerified(path);
      const name = basename(target);
      await writePrivateFile(`${target}.sha256`, `${await digestOf(path)}  ${name}\n`);
      await rename(path, target);
      await syncDirectory(directory);
      return { name, number: Number(KEPT.exec(name)?.[1]), writtenAtMs: (await stat(target)).mtimeMs };
    },
    removeOld: async (count) => {
      const left: string[] = [];
      for (const { name } of (await list()).slice(Math.max(1, count))) {
        if ((await isAsDigestSays(pathOf(name))) === true) await remove([name, `${name}.sha256`]);
        else left.push(name);
      }
      return left;
    },
  };
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}
