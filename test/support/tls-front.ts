import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { onTestFinished } from 'vitest';
import type { PostgresConnection } from '../../src/core/store/embedded/connection.ts';

/** A PostgreSQL that accepts TLS, as seen from its network. */
export type TlsFront = {
  /** Returns its URL at `localhost`; `query` follows the "?". */
  url(query: string): string;
  /** All bytes that clients have sent, as anyone on the network path sees them. */
  sent(): Buffer;
  /** How many connections got as far as speaking to PostgreSQL. */
  admittedCount(): number;
};

/** The first message of a client that wants TLS (PostgreSQL's protocol, SSLRequest). */
const SSL_REQUEST = Buffer.from('0000000804d2162f', 'hex');

/** Accepts connections for a test's database until the test ends. Without a certificate it refuses TLS, like a server without TLS. */
export async function startTlsFront(
  database: PostgresConnection,
  certificate: { key: string; cert: string } | null,
): Promise<TlsFront> {
  const sent: Buffer[] = [];
  const sockets = new Set<Socket>();
  let admittedCount = 0;
  const link = (client: Socket, upstream: Socket) => {
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => other.destroy());
      socket.on('close', () => other.destroy());
      socket.pipe(other);
    }
  };
  const admit = (client: Socket, first: Buffer) => {
    admittedCount += 1;
    const upstream = connect(`${database.host}/.s.PGSQL.${database.port}`);
    upstream.write(first);
    link(client, upstream);
  };
  const inner = createServer((client) => {
    client.on('error', () => client.destroy());
    client.once('data', (first) => {
      client.pause();
      if (!first.equals(SSL_REQUEST)) return admit(client, first);
      client.write(certificate === null ? 'N' : 'S');
      if (certificate === null) return;
      const secure = new TLSSocket(client, { isServer: true, ...certificate });
      secure.on('error', () => client.destroy());
      secure.once('data', (bytes) => admit(secure, bytes));
    });
  });
  // A separate server, because no one else sees the bytes that a TLS socket reads.
  const outer = createServer((client) => {
    client.on('data', (bytes) => sent.push(bytes));
    link(client, connect((inner.address() as AddressInfo).port, '127.0.0.1'));
  });
  for (const server of [inner, outer]) {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  }
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    for (const server of [outer, inner]) await new Promise((resolve) => server.close(resolve));
  });
  const { port } = outer.address() as AddressInfo;
  const { user, password, database: name } = database;
  return {
    url: (query) => `postgres://${user}:${encodeURIComponent(password)}@localhost:${port}/${name}?${query}`,
    sent: () => Buffer.concat(sent),
    admittedCount: () => admittedCount,
  };
}
