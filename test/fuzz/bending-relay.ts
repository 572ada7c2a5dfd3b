import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** Changes the bytes of a server's answer, without changing the length; `null` drops the answer. */
export type Bend = (answer: string) => string | null;

/** Starts a server that fails in a planted way: it relays to a healthy one and changes the answers. Proves that a test can fail. */
export async function startBendingRelay(port: number, bend: Bend): Promise<{ port: number; stop(): Promise<void> }> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const upstream = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {
        client.destroy();
        upstream.destroy();
      });
      socket.once('close', () => sockets.delete(socket));
    }
    client.pipe(upstream);
    let isSilent = false;
    upstream.on('data', (chunk) => {
      const bent = isSilent ? null : bend(chunk.toString('latin1'));
      if (bent === null) isSilent = true;
      else client.write(Buffer.from(bent, 'latin1'));
    });
    upstream.on('end', () => (isSilent ? undefined : client.end()));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
