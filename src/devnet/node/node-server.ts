import type { Ledger } from '../chain/ledger.ts';
import type { Fault } from '../faults/faults.ts';
import { startGrpcServer } from './grpc-server.ts';
import { type Control, type HttpApi, type Listener, startHttpServer } from './http-server.ts';
import { fallSick } from './node-answers.ts';

/** A node that serves a ledger at four ports, as java-tron does. Several may serve the same one, each with its own faults. */
export interface NodeServer {
  /** The JSON API, and JSON-RPC at `/jsonrpc`. Example: `http://127.0.0.1:40123`. */
  readonly url: string;
  /** Its part under `/walletsolidity`, and nothing else. */
  readonly solidityUrl: string;
  /** `protocol.Wallet`, without TLS. Example: `grpc://127.0.0.1:40125`. */
  readonly grpcUrl: string;
  /** `protocol.WalletSolidity`. */
  readonly grpcSolidityUrl: string;
  /** Replaces the faults; without arguments the node is healthy again. Requests that hang already stay so until the node stops. */
  setFault(...faults: readonly Fault[]): void;
  /** Closes the ports and every connection. */
  stop(): Promise<void>;
}

/** 0, or absent, takes a free port. */
export interface NodePorts {
  readonly port?: number;
  readonly solidityPort?: number;
  readonly grpcPort?: number;
  readonly grpcSolidityPort?: number;
  /** Whether the first port does not answer `/walletsolidity`, as java-tron's does not, and that of a big provider does. */
  readonly separatePorts?: boolean;
}

export async function startNodeServer({
  ledger,
  now,
  host,
  ports,
  control,
}: {
  readonly ledger: Ledger;
  readonly now: () => number;
  readonly host: string;
  readonly ports: NodePorts;
  readonly control: Control | null;
}): Promise<NodeServer> {
  const { port = 0, solidityPort = 0, grpcPort = 0, grpcSolidityPort = 0, separatePorts = false } = ports;
  let sickness = fallSick(ledger, []);
  const context = { ledger, now, sickness: () => sickness };
  const apis: HttpApi[] = separatePorts ? ['/wallet', '/jsonrpc'] : ['/wallet', '/jsonrpc', '/walletsolidity'];
  const starts = [
    () => startHttpServer({ ...context, control, apis }, { host, port }),
    () => startHttpServer({ ...context, control: null, apis: ['/walletsolidity'] }, { host, port: solidityPort }),
    () => startGrpcServer({ ...context, service: 'Wallet' }, { host, port: grpcPort }),
    () => startGrpcServer({ ...context, service: 'WalletSolidity' }, { host, port: grpcSolidityPort }),
  ];
  const listeners: Listener[] = [];
  const stop = async () => {
    await Promise.all(listeners.map((listener) => listener.stop()));
  };
  try {
    for (const start of starts) listeners.push(await start());
  } catch (error) {
    await stop();
    throw error;
  }
  const [http, solidity, grpc, grpcSolidity] = listeners.map(
    (listener) => `${host.includes(':') ? `[${host}]` : host}:${listener.port}`,
  );
  return {
    url: `http://${http}`,
    solidityUrl: `http://${solidity}`,
    grpcUrl: `grpc://${grpc}`,
    grpcSolidityUrl: `grpc://${grpcSolidity}`,
    setFault(...next) {
      sickness = fallSick(ledger, next);
    },
    stop,
  };
}
