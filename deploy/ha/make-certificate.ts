import { execFile } from 'node:child_process';
import { chown, copyFile, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ProgramUser } from './program.ts';

/** Where patroni.yml has what it needs for TLS. */
export const TLS_DIRECTORY = '/etc/patroni/tls';

export type Certificate = { directory: string; caFile: string; ca: string };

/** Makes what stands in `TLS_DIRECTORY` for this machine, in a directory of the cluster: a certificate that is its own authority. */
export async function makeCertificate(options: {
  openssl: string;
  directory: string;
  user: ProgramUser | null;
}): Promise<Certificate> {
  const directory = join(options.directory, 'tls');
  await mkdir(directory);
  const [certificate, key, caFile] = ['server.crt', 'server.key', 'ca.crt'].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  await promisify(execFile)(options.openssl, [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '30'],
    ...['-subj', '/CN=quittance', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'],
    ...['-keyout', key, '-out', certificate],
  ]);
  await copyFile(certificate, caFile);
  // PostgreSQL takes a key that is its own and nobody else may read, as openssl has made it.
  if (options.user !== null) await chown(key, options.user.uid, options.user.gid);
  return { directory, caFile, ca: await readFile(caFile, 'utf8') };
}
