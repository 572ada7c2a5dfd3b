import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAddress } from '@quittance/tron/address';
import { AppError, notFound } from '../../core/domain/errors.ts';
import { decodeId } from '../../core/domain/ids.ts';
import { unlimitedNode } from '../../core/domain/node.ts';
import { openKeyRing } from '../../core/runtime/open-key-ring.ts';
import { writePrivateFile } from '../../core/runtime/private-file.ts';
import { isRunning } from '../../core/runtime/processes.ts';
import { type Database, openDatabase } from '../../core/store/db/database.ts';
import { createSeals } from '../../core/store/db/seals.ts';
import { readRunningPostgres } from '../../core/store/embedded/connection.ts';
import type { NetworkConfig } from '../../server/config/config.ts';

/**
 * The content of `<data dir>/sandbox.json`, which scripts can read while a sandbox is ready. The mode is 0600, because the file holds
 * secrets.
 */
export type SandboxFile = {
  baseUrl: string;
  apiKey: string;
  projectId: string;
  webhookSecret: string;
  inboxUrl: string;
  /** The network's node: over HTTP for wallets, and over gRPC for the service. */
  nodeUrl: string;
  grpcUrl: string;
  grpcSolidityUrl: string;
  usdtContract: string;
  addresses: string[];
  /** Another of the demo project's addresses, which gets no new invoices. */
  retiredAddress: string;
  payer: { address: string; privateKey: string };
  pid: number;
};

export function writeSandboxFile(dataDir: string, file: SandboxFile): Promise<void> {
  return writePrivateFile(join(dataDir, 'sandbox.json'), `${JSON.stringify(file, null, 2)}\n`);
}

/** Removes the file that belongs to the sandbox with this process id, or to any sandbox. */
export async function removeSandboxFile(dataDir: string, pid: number | null): Promise<void> {
  const path = join(dataDir, 'sandbox.json');
  const text = pid === null ? '' : await readFile(path, 'utf8').catch(() => '');
  // If the data directory was deleted and created again, the file belongs to another sandbox.
  if (pid === null || text.includes(`"pid": ${pid}\n`)) await rm(path, { force: true });
}

/** Reads a running sandbox's file. Throws `SANDBOX_NOT_RUNNING`. */
async function readSandboxFile(dataDir: string): Promise<SandboxFile> {
  return (await findSandboxFile(dataDir)) ?? sandboxNotRunning(dataDir);
}

/** Reads a running sandbox's file, or returns `null` if none is running. */
export async function findSandboxFile(dataDir: string): Promise<SandboxFile | null> {
  const text = await readFile(join(dataDir, 'sandbox.json'), 'utf8').catch(() => null);
  if (text === null) return null;
  const file = JSON.parse(text) as SandboxFile;
  return isRunning(file.pid) ? file : null;
}

export function sandboxNotRunning(dataDir: string): never {
  throw new AppError(
    'SANDBOX_NOT_RUNNING',
    `no sandbox is running on the data directory ${dataDir}: start one with "npm start", or set QUITTANCE_DATA_DIR to the sandbox directory`,
  );
}

/** Returns the sandbox's own network. It's reached over gRPC, which we also recommend for other networks. */
export function sandboxNetwork({
  grpcUrl,
  grpcSolidityUrl,
  usdtContract,
}: Pick<SandboxFile, 'grpcUrl' | 'grpcSolidityUrl' | 'usdtContract'>): NetworkConfig {
  const usdt = parseAddress(usdtContract);
  if (usdt.kind !== 'ok') throw notFound`the sandbox has no USDT contract: ${usdt.reason}`;
  return {
    nodes: [unlimitedNode(grpcUrl, grpcUrl, { solidityUrl: grpcSolidityUrl })],
    usdt: usdt.account,
    agreement: 1,
  };
}

/** Returns the network of a data directory's sandbox, and the sandbox's public URL. Throws `SANDBOX_NOT_RUNNING`. */
export async function readSandboxNetwork(dataDir: string): Promise<NetworkConfig & { publicUrl: string }> {
  const file = await readSandboxFile(dataDir);
  return { ...sandboxNetwork(file), publicUrl: file.baseUrl };
}

/**
 * A running sandbox with its database, for the project `projectUuid` with the key `apiKey`. This is either the demo project or, with
 * `isOfKey`, the project of the request's key. A request can't reach any other project.
 */
export type Sandbox = Omit<SandboxFile, 'retiredAddress'> & {
  db: Database;
  projectUuid: string;
  retiredAddress: string | null;
  isOfKey?: boolean;
};

/** Runs `work` with the running sandbox of a data directory. Throws `SANDBOX_NOT_RUNNING`. */
export async function withSandbox<Output>(dataDir: string, work: (sandbox: Sandbox) => Promise<Output>) {
  const file = await readSandboxFile(dataDir);
  const projectUuid = decodeId('prj', file.projectId);
  if (projectUuid === null) throw new Error(`not a project id: ${file.projectId}`);
  const connection = (await readRunningPostgres(dataDir)) ?? sandboxNotRunning(dataDir);
  const judge = { mode: 'ledger', onProblem: () => undefined } as const;
  const settings = { masterKeys: null, databaseUrl: null, dataDir };
  const db = openDatabase({
    connection,
    seals: createSeals(judge, () => openKeyRing(settings, { mayCreate: false })),
    poolSize: 1,
    applicationName: 'quittance command',
    onError: () => undefined, // The next statement on the connection reports the error.
  });
  try {
    return await work({ ...file, db, projectUuid });
  } finally {
    await db.close();
  }
}
