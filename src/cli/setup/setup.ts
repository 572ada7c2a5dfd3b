import { randomBytes } from 'node:crypto';
import { lstat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { AppError } from '../../core/domain/errors.ts';
import { createMasterKey } from '../../core/runtime/key-ring.ts';
import { writePrivateFile } from '../../core/runtime/private-file.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';

/** A host name for which Caddy can get a certificate, without a port. */
const HOST = /^(?=.{4,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9]$/;

/**
 * Writes the secrets of a new installation, and never overwrites them: with another master key, no one could decrypt what the first one
 * encrypted.
 */
export async function printSetup(_: Terminal, { site, output }: { site: string; output: string }): Promise<Result> {
  const host = site.toLowerCase();
  if (!HOST.test(host)) {
    throw new AppError('INVALID_ARGUMENT', '--site must be a host name only, such as pay.example.com');
  }
  const text = compose(host);
  if (output === '-') return { data: { file: null, text }, text: text.trimEnd() };
  const file = resolve(output);
  if (await isThere(file)) {
    throw new AppError(
      'CONFLICT',
      `${output} already exists and contains the keys of an installation, so nothing was written. Give another --output, or move the file away`,
    );
  }
  await writePrivateFile(file, text);
  return {
    data: { file, site: host },
    text: `created ${output}, which contains the secrets of this installation. Keep a copy of QUITTANCE_MASTER_KEY elsewhere.`,
    next: `Add your nodes to it, then run: docker compose up -d`,
  };
}

async function isThere(file: string): Promise<boolean> {
  try {
    await lstat(file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

function compose(host: string): string {
  const secret = () => randomBytes(24).toString('base64url');
  return `# For compose.yaml, written by "quittance setup". Anyone who can read this file has the database and the keys of this installation.
QUITTANCE_SITE=${host}

# Nodes of the main network, or of the test network Nile, of at least two operators: docs/guides/nodes.md, "TRON networks".
QUITTANCE_MAINNET_NODES=
QUITTANCE_NILE_NODES=
# Your TronGrid API key, if you use nodes of trongrid.io.
QUITTANCE_TRON_API_KEY=

# Encrypts secrets and seals rows. Without it, a backup is of little use: keep a copy apart from all copies of the database.
QUITTANCE_MASTER_KEY=${createMasterKey().bytes.toString('base64')}
# An age public key (age1…). Only its private key can read backups. If it is empty, the master key can.
QUITTANCE_BACKUP_RECIPIENT=

# Of PostgreSQL, which nobody outside reaches: the user who owns the tables, and the one that the service is.
POSTGRES_PASSWORD=${secret()}
QUITTANCE_DATABASE_PASSWORD=${secret()}
`;
}
