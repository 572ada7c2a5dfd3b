import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { MAX_LOGO_BYTES, readLogo } from '../../domain/logo.ts';
import type { Logo } from '../../store/logos.ts';
import type { Problem } from '../cli-error.ts';
import { clip } from '../clip.ts';

/** The picture in a file, or `null` with what is wrong added to `problems`. At most one byte more than is allowed is read. */
export async function readLogoFile(path: string, problems: Problem[]): Promise<Logo | null> {
  const refuse = (reason: string) => {
    problems.push({ subject: '--logo', message: `--logo ${clip(path)} ${reason}` });
    return null;
  };
  const content = await readStart(path).catch((error: NodeJS.ErrnoException) => {
    const { code } = error;
    return refuse(
      code === 'ENOENT' ? 'is not there: give the path of a file' : `cannot be read (${code}): let your user read it`,
    );
  });
  if (content === null) return null;
  if (content === 'no file') return refuse('is not a file: give the path of a PNG, JPEG or WebP');
  const read = readLogo(content);
  return read.kind === 'ok' ? { type: read.type, content } : refuse(read.reason);
}

async function readStart(path: string): Promise<Buffer | 'no file'> {
  // A pipe is not waited for.
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    if (!(await handle.stat()).isFile()) return 'no file';
    const buffer = Buffer.alloc(MAX_LOGO_BYTES + 1);
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}
