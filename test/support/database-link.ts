import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import type { PostgresConnection } from '../../src/core/store/embedded/connection.ts';

/** A connection between a service and its PostgreSQL that can be broken on demand. */
export type DatabaseLink = {
  /** Connects through the link. */
  connection: PostgresConnection;
  setMode(mode: 'open' | 'refuse' | 'hang'): void;
  stop(): Promise<void>;
};

export async function startDatabaseLink(database: PostgresConnection): Promise<DatabaseLink> {
  const socketPath = join(database.host, `.s.PGSQL.${database.port}`);
  let mode: 'open' | 'refuse' | 'hang' = 'open';
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    client.on('error', () => client.destroy());
    sockets.add(client);
    if (mode === 'refuse') client.resetAndDestroy();
    if (mode !== 'open') return;
    const upstream = connect(socketPath);
    sockets.add(upstream);
    upstream.on('error', () => client.destroy());
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => client.destroy());
    client.pipe(upstream).pipe(client);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const cut = () => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  return {
    connection: { ...database, host: '127.0.0.1', port: (address as AddressInfo).port },
    setMode: (next) => {
      mode = next;
      if (next !== 'open') cut();
    },
    stop: async () => {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
