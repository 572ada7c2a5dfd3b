import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../domain/errors.ts';
import { writeJson } from './secrets.ts';

/** What `<data dir>/sandbox.json` tells scripts while a sandbox is ready. Mode 0600: it holds secrets. */
export type SandboxFile = {
  baseUrl: string;
  apiKey: string;
  projectId: string;
  webhookSecret: string;
  inboxUrl: string;
  /** The network's node over HTTP, for wallets, and by gRPC, for the service. */
  nodeUrl: string;
  grpcUrl: string;
  grpcSolidityUrl: string;
  usdtContract: string;
  addresses: string[];
  /** Another address of the demo project, which gets no new invoices. */
  retiredAddress: string;
  payer: { address: string; privateKey: string };
  pid: number;
};

export function writeSandboxFile(dataDir: string, file: SandboxFile): Promise<void> {
  return writeJson(join(dataDir, 'sandbox.json'), file);
}

/** Removes the file of the sandbox with that process id, or any. */
export async function removeSandboxFile(dataDir: string, pid: number | null): Promise<void> {
  const path = join(dataDir, 'sandbox.json');
  const text = pid === null ? '' : await readFile(path, 'utf8').catch(() => '');
  // Where the data directory was deleted and made anew, it is the file of another one.
  if (pid === null || text.includes(`"pid": ${pid}\n`)) await rm(path, { force: true });
}

/** Reads the file of a running sandbox. Error: `SANDBOX_NOT_RUNNING`. */
export async function readSandboxFile(dataDir: string): Promise<SandboxFile> {
  const text = await readFile(join(dataDir, 'sandbox.json'), 'utf8').catch((error: unknown) => {
    throw sandboxNotRunning(dataDir, error);
  });
  const file = JSON.parse(text) as SandboxFile;
  try {
    process.kill(file.pid, 0);
  } catch (error) {
    // EPERM: it runs as another user.
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') throw sandboxNotRunning(dataDir, error);
  }
  return file;
}

export function sandboxNotRunning(dataDir: string, cause?: unknown): AppError {
  return new AppError(
    'SANDBOX_NOT_RUNNING',
    `no sandbox runs on the data directory ${dataDir}: start one with "npm start", or set QUITTANCE_DATA_DIR as it has it`,
    { cause },
  );
}
