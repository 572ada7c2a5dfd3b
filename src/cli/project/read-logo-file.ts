import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { MAX_LOGO_BYTES } from '../../domain/brand/logo.ts';

/** The start of a file, at most one byte more than a logo may have; or why it cannot be read. */
export async function readLogoFile(file: string): Promise<{ file: string; content: Buffer | string }> {
  const content = await readStart(file).catch(({ code }: NodeJS.ErrnoException) =>
    code === 'ENOENT' ? 'is not there: give the path of a file' : `cannot be read (${code}): let your user read it`,
  );
  return { file, content };
}

async function readStart(path: string): Promise<Buffer | string> {
  // A pipe is not waited for.
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    if (!(await handle.stat()).isFile()) return 'is not a file: give the path of a PNG, JPEG or WebP';
    const buffer = Buffer.alloc(MAX_LOGO_BYTES + 1);
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}
