import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseObject } from '../../runtime/parse-object.ts';
import { writePrivateFile } from '../../runtime/private-file.ts';

/** The newest manifest that has been in force here. It's stored outside the database and its backups. */
export type SerialCheckpoint = { serial: number; digest: string };
/** `ledgerId` is the manifest's ledger, or `null` if an older release wrote the file. */
type KeptMark = SerialCheckpoint & { ledgerId: string | null };

function markPath(dataDir: string): string {
  return join(dataDir, 'manifest-serial.json');
}

/** The mark is `null` if no manifest has been in force here yet. */
export async function readMark(
  dataDir: string,
): Promise<{ kind: 'ok'; mark: KeptMark | null } | { kind: 'invalid'; reason: string }> {
  const path = markPath(dataDir);
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => error);
  if (typeof text !== 'string') {
    if (text.code === 'ENOENT') return { kind: 'ok', mark: null };
    return { kind: 'invalid', reason: `${path}, which records the newest manifest, cannot be read (${text.code})` };
  }
  const { serial, digest, ledgerId } = parseObject(text);
  if (Number.isSafeInteger(serial) && typeof digest === 'string') {
    const mark = { serial: serial as number, digest, ledgerId: typeof ledgerId === 'string' ? ledgerId : null };
    return { kind: 'ok', mark };
  }
  return {
    kind: 'invalid',
    reason: `${path}, which records the newest manifest, is damaged: restore it, or remove it if you know the cause`,
  };
}

/** Returns why a manifest can't follow the newest one, or `null` if it can. */
export function checkMark(mark: SerialCheckpoint | null, { serial, digest }: SerialCheckpoint): string | null {
  if (mark === null || serial > mark.serial || (serial === mark.serial && digest === mark.digest)) return null;
  return serial === mark.serial
    ? `it differs from the manifest with the same serial ${serial} that was in force here`
    : `it has serial ${serial}, but serial ${mark.serial} was already in force here: install the newest manifest`;
}

/** The caller must have checked that `mark` may follow the stored mark. */
export async function writeMark(dataDir: string, mark: KeptMark): Promise<void> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  await writePrivateFile(markPath(dataDir), `${JSON.stringify(mark)}\n`);
}
