import { isIP } from 'node:net';
import { isLocalNetwork, NETWORKS } from '../../core/domain/network.ts';
import { type NodeSpec, urlsOf } from '../../core/domain/node.ts';
import { isLoopback } from '../../core/domain/url.ts';
import { inspectTransport } from '../../core/store/db/inspect-transport.ts';
import { NODE_VARIABLES, type Variable } from './settings.ts';

type TransportProblem = { variable: Variable; message: string };

/** Returns problems with the connection to a database. An attacker on the network path can read and change every invoice. */
export function databaseTransportProblems(
  variable: Variable,
  url: string,
  allowed: readonly string[],
): TransportProblem[] {
  const transport = inspectTransport(url);
  if (transport.kind === 'invalid') return [{ variable, message: `(value not shown): it ${transport.reason}.` }];
  if (transport.kind === 'socket' || transport.kind === 'verified' || isTrusted(transport.host, allowed)) return [];
  const how = transport.kind === 'plain' ? 'without TLS' : "over TLS that doesn't verify the server";
  const message = `connects to ${transport.host} ${how}, so anyone on the network path can read and change everything: add "sslmode=verify-full&sslrootcert=/path/to/ca.crt" to it (sslrootcert only for your own CA), or list ${transport.host} in QUITTANCE_ALLOW_PLAINTEXT if the network path is otherwise secure.`;
  return [{ variable, message }];
}

/** Returns problems with the connections to a real network's nodes. An attacker on the network path can forge any response. */
export function nodeTransportProblems(
  variable: Variable,
  nodes: readonly NodeSpec[],
  allowed: readonly string[],
): TransportProblem[] {
  const hosts = nodes.flatMap(urlsOf).flatMap((url) => {
    const { protocol, hostname } = new URL(url);
    return /^(http|grpc):$/.test(protocol) && !isTrusted(hostname, allowed) ? [hostname] : [];
  });
  return [...new Set(hosts)].map((host) => ({
    variable,
    message: `connects to ${host} in plain text, so anyone on the network path can forge its answers: use https:// or grpcs://, or list ${host} in QUITTANCE_ALLOW_PLAINTEXT if the network path is otherwise secure.`,
  }));
}

const AT_STAKE: readonly Variable[] = [
  'DATABASE_URL',
  ...NETWORKS.filter((network) => !isLocalNetwork(network)).map((network) => NODE_VARIABLES[network]),
];

/** Finds the Node.js variable that makes every TLS connection in the process accept any certificate. */
export function certificateProblems(env: NodeJS.ProcessEnv, { present }: { present: ReadonlySet<Variable> }) {
  const variable = 'NODE_TLS_REJECT_UNAUTHORIZED';
  const isAtStake = AT_STAKE.some((each) => present.has(each));
  if (env[variable] !== '0' || !isAtStake) return [];
  const message = `${variable} is "0", so Quittance would not verify the certificate of any node, database or receiver: unset it. If you use your own CA, set NODE_EXTRA_CA_CERTS to its file.`;
  return [{ variable, message }];
}

/** Whether plaintext to this host stays on this machine or is explicitly allowed. */
function isTrusted(host: string, allowed: readonly string[]): boolean {
  const name = canonical(host);
  return isLoopback(name) || allowed.map(canonical).includes(name);
}

/** Normalises a host: `[FD00::05]` → `fd00::5`. */
function canonical(host: string): string {
  const bare = host.replace(/^\[|\]$/g, '').toLowerCase();
  return isIP(bare) === 6 && !bare.includes('%') ? new URL(`http://[${bare}]`).hostname.slice(1, -1) : bare;
}
