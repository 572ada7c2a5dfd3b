import { constants } from 'node:fs';
import { open } from 'node:fs/promises';

/** The file that an option names, its content in base64: at most one byte more than it may have. `unread`: why it cannot be read. */
export async function readFileOption(path: string, { of, mostBytes }: { of: string; mostBytes: number }) {
  const content = await readStart(path, of, mostBytes).catch(({ code }: NodeJS.ErrnoException) =>
    code === 'ENOENT' ? 'is not there: give the path of a file' : `cannot be read (${code}): let your user read it`,
  );
  return typeof content === 'string'
    ? { file: path, content: '', unread: content }
    : { file: path, content: content.toString('base64') };
}

async function readStart(path: string, of: string, mostBytes: number): Promise<Buffer | string> {
  // A pipe is not waited for.
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    if (!(await handle.stat()).isFile()) return `is not a file: give the path of ${of}`;
    const buffer = Buffer.alloc(mostBytes + 1);
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}
