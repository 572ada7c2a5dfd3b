import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from '../runtime/log.ts';
import { plainAddress } from './client-address.ts';
import { clientNetwork } from './client-network.ts';
import { createFairQueue } from './fair-queue.ts';

export type ConnectionLimits = { total: number; idleOfNetwork: number };

/**
 * The total is 10,000 streams of open pages, and the other connections; each takes some 10 KiB at rest. A network may have 1,024 that
 * carry nothing, and as many of known callers. That is twice what the kernel hands over at once (511), so that a newcomer beside many
 * others is not closed before its request was read.
 */
export const CONNECTION_LIMITS: ConnectionLimits = { total: 12_000, idleOfNetwork: 1024 };
/** Node counts a connection until it is gone, a moment after it was closed. */
const CLOSING = 1024;
const LOG_MS = 60_000;

/** A trusted proxy is a network of its own, and known. `open` counts the answers that are not over. */
type Connection = { network: string; isOfProxy: boolean; isKnown: boolean; open: number };

const CALLER = Symbol('caller');
type CallerSocket = Socket & { [CALLER]?: true };

/** Notes that a connection carried a request of a known caller, so that the connections of strangers are closed first. */
export function noteCaller(socket: CallerSocket): void {
  socket[CALLER] = true;
}

/**
 * Bounds connections so that one client cannot take every place. Connections that carry nothing are closed first, which HTTP allows at any
 * moment. Beyond the limit of a network its oldest is closed, unless a trusted proxy made it. When all places are taken, the network with
 * the most loses its oldest, strangers before others. An answer or a stream under way is cut only where strangers of one network have more
 * than half of all places, and only for another network.
 */
export function boundConnections(
  server: Server,
  { isProxy, log }: { isProxy(ip: string): boolean; log: Logger },
  limits: ConnectionLimits = CONNECTION_LIMITS,
): void {
  const connections = new Map<Socket, Connection>();
  const places = createPlaces(limits);
  const logRefusal = createCapLogger(log);
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
    logRefusal(connections.get(socket)?.network, connections.size);
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

/** Counts connections by network, and picks the one that gives way. */
function createPlaces({ total }: ConnectionLimits) {
  const [strangers, known] = [createFairQueue<Socket>(), createFairQueue<Socket>()];
  /** Connections with requests of strangers under way; also those of callers who were not yet known when the request began. */
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
    /** Takes the connection that gives way to a newcomer from this network, if any does. */
    takeFor: (newcomer: string) => {
      const largest = carrying.largest() ?? '';
      // Beside such a network, the only connection of another may not have been read yet; each new connection of the large network would
      // close it.
      const beyond = hasMost(largest) ? 1 : 0;
      return (
        takeIdle(strangers, beyond) ??
        takeIdle(known, beyond) ??
        (largest === newcomer ? undefined : takeCarrying(largest))
      );
    },
  };
}

/** Logs at most once a minute that connections are closed, and the network of the last one. */
function createCapLogger(log: Logger): (network: string | undefined, open: number) => void {
  let [closed, loggedMs] = [0, Number.NEGATIVE_INFINITY];
  return (network, open) => {
    closed += 1;
    if (performance.now() - loggedMs < LOG_MS) return;
    log.warn({ network, closed, open }, 'connections were closed to make room');
    [closed, loggedMs] = [0, performance.now()];
  };
}
