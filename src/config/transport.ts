import { isIP } from 'node:net';
import type { NodeSpec } from '../domain/node.ts';
import { inspectTransport } from '../store/inspect-transport.ts';
import type { Variable } from './settings.ts';

type Problem = { variable: Variable; message: string };

/** What is wrong with the way to a database: whoever stands on it reads and changes every invoice. */
export function databaseTransportProblems(variable: Variable, url: string, allowed: readonly string[]): Problem[] {
  const transport = inspectTransport(url);
  if (transport.kind === 'invalid') return [{ variable, message: `(value not shown): it ${transport.reason}.` }];
  if (transport.kind === 'socket' || transport.kind === 'verified' || isTrusted(transport.host, allowed)) return [];
  const how = transport.kind === 'plain' ? 'without TLS' : 'by TLS that does not verify who answers';
  const message = `leads to ${transport.host} ${how}, so whoever stands between can read and change everything: add "sslmode=verify-full&sslrootcert=/path/to/ca.crt" to it (sslrootcert for a CA of your own only), or name ${transport.host} in QUITTANCE_ALLOW_PLAINTEXT if the way there is safe otherwise.`;
  return [{ variable, message }];
}

/** What is wrong with the way to the nodes of a real network: whoever stands on it shows what he likes. */
export function nodeTransportProblems(
  variable: Variable,
  nodes: readonly NodeSpec[],
  allowed: readonly string[],
): Problem[] {
  const urls = nodes.flatMap(({ url, solidityUrl, grpc }) => [url, solidityUrl, grpc?.url, grpc?.solidityUrl]);
  const hosts = urls.flatMap((url) => {
    const { protocol, hostname } = new URL(url ?? 'https://none.invalid');
    return /^(http|grpc):$/.test(protocol) && !isTrusted(hostname, allowed) ? [hostname] : [];
  });
  return [...new Set(hosts)].map((host) => ({
    variable,
    message: `asks ${host} in plain text, so whoever stands between can answer in its place: write https:// or grpcs://, or name ${host} in QUITTANCE_ALLOW_PLAINTEXT if the way there is safe otherwise.`,
  }));
}

const AT_STAKE: readonly Variable[] = ['DATABASE_URL', 'QUITTANCE_MAINNET_NODES', 'QUITTANCE_NILE_NODES'];

/** The variable of Node.js that has every TLS connection of the process take any certificate. */
export function certificateProblems(
  env: NodeJS.ProcessEnv,
  { present }: { present: ReadonlySet<Variable> },
): { variable: string; message: string }[] {
  const variable = 'NODE_TLS_REJECT_UNAUTHORIZED';
  const isAtStake = AT_STAKE.some((each) => present.has(each));
  if (env[variable] !== '0' || !isAtStake) return [];
  const message = `${variable} is "0", so no certificate of a node, a database or a receiver would be verified: unset it, and name the file of a CA of your own in NODE_EXTRA_CA_CERTS.`;
  return [{ variable, message }];
}

/** Whether plain text to this host stays on this machine, or is allowed by name. */
function isTrusted(host: string, allowed: readonly string[]): boolean {
  const name = canonical(host);
  return isThisMachine(name) || allowed.map(canonical).includes(name);
}

/** Not what merely looks like it, such as `x.localhost` or `127.1.example.com`: that is asked of a name server. */
function isThisMachine(name: string): boolean {
  return name === 'localhost' || name === '::1' || (isIP(name) === 4 && name.startsWith('127.'));
}

/** One spelling of a host: `[FD00::05]` → `fd00::5`. */
function canonical(host: string): string {
  const bare = host.replace(/^\[|\]$/g, '').toLowerCase();
  return isIP(bare) === 6 && !bare.includes('%') ? new URL(`http://[${bare}]`).hostname.slice(1, -1) : bare;
}
