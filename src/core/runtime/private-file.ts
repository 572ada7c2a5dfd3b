import { open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Writes a small file atomically, with mode 0600. The file gets its directory's owner, even if root writes it. When this returns, the file
 * is on the disk. The caller must hold a lock. Any existing draft was therefore left behind by a killed process.
 */
export async function writePrivateFile(path: string, content: string): Promise<void> {
  const draft = `${path}.draft`;
  await rm(draft, { force: true });
  const handle = await open(draft, 'wx', 0o600);
  try {
    await handle.writeFile(content);
    if (process.getuid?.() === 0) {
      const { uid, gid } = await stat(dirname(path));
      // Change the owner through the handle, because the directory's owner could replace the path with a link to any other file.
      await handle.chown(uid, gid);
    }
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(draft, path);
  await syncDirectory(dirname(path));
}

/** Makes sure that files created or renamed in a directory survive a power loss. */
export async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
