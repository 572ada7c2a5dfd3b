import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { createTally, type Logger } from '../../core/runtime/log.ts';
import { clientNetwork, plainAddress } from './client-address.ts';
import { createFairQueue } from './fair-queue.ts';

export type ConnectionLimits = { total: number; idleOfNetwork: number };

/**
 * The total allows for 10,000 streams to open pages, plus other connections. An idle connection needs about 10 KiB. A network may have
 * 1,024 idle connections from strangers, and another 1,024 from known callers. Each number is twice the kernel's backlog (511), so that a
 * newcomer in a crowd isn't disconnected before its request has been read.
 */
export const CONNECTION_LIMITS: ConnectionLimits = { total: 12_000, idleOfNetwork: 1024 };
/** Node.js counts a connection until a moment after it was closed. */
const CLOSING = 1024;

/** A trusted proxy counts as its own network, and as known. `open` counts unfinished responses. */
type Connection = { network: string; isOfProxy: boolean; isKnown: boolean; open: number };

const CALLER = Symbol('caller');
type CallerSocket = Socket & { [CALLER]?: true };

/** Marks a connection as having carried a known caller's request so that strangers' connections are closed first. */
export function noteCaller(socket: CallerSocket): void {
  socket[CALLER] = true;
}

/**
 * Limits connections so that a single client can't use up all of them. Idle connections are closed first, which HTTP allows at any time. If
 * a network exceeds its limit, its oldest connection is closed, unless it comes from a trusted proxy. If all places are taken, the network
 * with the most connections loses its oldest one, strangers first. A response or stream in progress is interrupted only in favour of
 * another network, and only if the strangers of one network have more than half of all places.
 */
export function boundConnections(
  server: Server,
  { isProxy, log }: { isProxy(ip: string): boolean; log: Logger },
  limits: ConnectionLimits = CONNECTION_LIMITS,
): void {
  const connections = new Map<Socket, Connection>();
  const places = createPlaces(limits);
  const tally = createTally(() => performance.now());
  server.maxConnections = limits.total + CLOSING;
  const forget = (socket: Socket) => {
    const connection = connections.get(socket);
    if (connection === undefined) return;
    places.idleOf(connection).remove(connection.network, socket);
    places.carrying.remove(connection.network, socket);
    connections.delete(socket);
  };
  const close = (socket: Socket | undefined) => {
    if (socket === undefined) return;
    const closed = tally.note('closed');
    const open = connections.size;
    // This is the network of the last one.
    const network = connections.get(socket)?.network;
    if (closed !== null) log.warn({ network, closed, open }, 'closed connections to make room for new ones');
    forget(socket);
    socket.destroy();
  };
  const rest = (socket: CallerSocket, connection: Connection) => {
    const { network, isOfProxy } = connection;
    places.carrying.remove(network, socket);
    connection.isKnown ||= socket[CALLER] === true;
    const idle = places.idleOf(connection);
    idle.add(network, socket);
    if (!isOfProxy && idle.countOf(network) > limits.idleOfNetwork) close(idle.takeOldest(network));
  };
  server.on('connection', (socket: Socket) => {
    const ip = plainAddress(socket.remoteAddress ?? '') ?? '';
    const isOfProxy = isProxy(ip);
    const network = isOfProxy ? ip : clientNetwork(ip);
    const connection = { network, isOfProxy, isKnown: isOfProxy, open: 0 };
    const loser = connections.size < limits.total ? undefined : (places.takeFor(network) ?? socket);
    connections.set(socket, connection);
    socket.once('close', () => forget(socket));
    close(loser);
    if (loser !== socket) rest(socket, connection);
  });
  server.on('request', ({ socket }, response) => {
    const connection = connections.get(socket);
    if (connection === undefined) return;
    if (connection.open === 0) {
      places.idleOf(connection).remove(connection.network, socket);
      if (!connection.isKnown) places.carrying.add(connection.network, socket);
    }
    connection.open += 1;
    response.once('close', () => {
      connection.open -= 1;
      if (connection.open === 0 && connections.has(socket)) rest(socket, connection);
    });
  });
}

/** Counts connections by network, and chooses the one to close. */
function createPlaces({ total }: ConnectionLimits) {
  const [strangers, known] = [createFairQueue<Socket>(), createFairQueue<Socket>()];
  /** Connections with a request in progress from a stranger, or from a caller who wasn't known yet when the request began. */
  const carrying = createFairQueue<Socket>();
  const hasMost = (network: string) => carrying.countOf(network) > total / 2;
  const takeIdle = (of: typeof known, beyond: number) => {
    const network = of.largest() ?? '';
    return of.countOf(network) > beyond ? of.takeOldest(network) : undefined;
  };
  const takeCarrying = (network: string) => {
    while (hasMost(network)) {
      const socket: CallerSocket | undefined = carrying.takeOldest(network);
      if (socket?.[CALLER] !== true) return socket;
    }
    return undefined;
  };
  return {
    carrying,
    idleOf: ({ isKnown }: Connection) => (isKnown ? known : strangers),
    /** Removes and returns the connection to close for a newcomer from this network, if there is one. */
    takeFor: (newcomer: string) => {
      const largest = carrying.largest() ?? '';
      // If one network is that large, the request on another network's only connection may not have been read yet. Without this exception,
      // each new connection of the large network could close it.
      const beyond = hasMost(largest) ? 1 : 0;
      return (
        takeIdle(strangers, beyond) ??
        takeIdle(known, beyond) ??
        (largest === newcomer ? undefined : takeCarrying(largest))
      );
    },
  };
}
