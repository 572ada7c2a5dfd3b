import { lstatSync, symlinkSync, unlinkSync } from 'node:fs';
import { chown, lstat, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createMasterKey } from './key-ring.ts';
import { writeKeyFile } from './open-key-ring.ts';
import { writePrivateFile } from './private-file.ts';

const NOBODY = 65_534;

const WRITERS: Record<string, (path: string) => Promise<void>> = {
  'the key file': (path) => writeKeyFile(path, [createMasterKey()]),
  'a private file of the database': (path) => writePrivateFile(path, 'secret'),
};

// Only root can change a file's owner.
describe.runIf(process.getuid?.() === 0)('root that writes into the directory of another user', () => {
  test.each(Object.entries(WRITERS))(
    'gives that user %s and no file to which its draft is made a link',
    async (_, write) => {
      const base = await mkdtemp(join(tmpdir(), 'quittance-private-'));
      onTestFinished(() => rm(base, { recursive: true, force: true }));
      const [dir, victim] = [join(base, 'data'), join(base, 'victim')];
      const path = join(dir, 'file');
      await mkdir(dir);
      await chown(dir, NOBODY, NOBODY);
      await writeFile(victim, 'of root');
      await write(path);
      expect(await stat(path)).toMatchObject({ uid: NOBODY, gid: NOBODY });

      const written = write(path);
      await swapForLink(`${path}.draft`, victim);
      await written;
      expect((await lstat(path)).isSymbolicLink()).toBe(true);
      expect(await stat(victim)).toMatchObject({ uid: 0, gid: 0 });
    },
  );
});

/** Checks at every turn of the event loop. Writing and syncing the file takes several turns. */
async function swapForLink(path: string, target: string): Promise<void> {
  while (lstatSync(path, { throwIfNoEntry: false }) === undefined) await turn();
  unlinkSync(path);
  symlinkSync(target, path);
}
