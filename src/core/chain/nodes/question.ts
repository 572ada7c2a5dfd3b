import type { JsonShape } from './json-reader.ts';

/**
 * Questions that have a substitute: infos replace logs, single blocks replace ranges of blocks, and JSON replaces the bytes of infos. A
 * failure of such a question never pauses the node. Only questions of the same kind are paused.
 */
export type Substitutable = 'logs' | 'ranges' | 'bytes';

/** A question to a node, in both protocols that nodes support. `read` throws on anything that doesn't answer it. */
export type Question<Answer> = {
  /** Absent if nothing else answers the question. */
  substitutable?: Substitutable;
  /** The limit of the answer in bytes. Default: 4 MiB. */
  maxBytes?: number;
  /** The approximate memory limit of the kept parts of a JSON answer. Default: 8 MiB. */
  maxHeldBytes?: number;
  /** The minimum timeout of this question, if it needs longer than others. */
  timeoutMs?: number;
  http: {
    path: `/wallet/${string}` | `/walletsolidity/${string}` | '/jsonrpc';
    body: object;
    shape?: JsonShape;
    read(json: unknown): Answer;
  };
  /** `null`: gRPC has no such call. */
  grpc: GrpcCall<Answer> | null;
};

export type GrpcCall<Answer> = {
  path: `/protocol.Wallet/${string}` | `/protocol.WalletSolidity/${string}`;
  /** Less than `maxBytes`, because bytes are shorter than JSON. */
  maxBytes?: number;
  request: Uint8Array;
  /**
   * Receives the answer's message in chunks, `length` bytes if the node is right. java-tron sends an empty message if the requested object
   * doesn't exist.
   */
  newSink(length?: number): MessageSink<Answer>;
};

export type MessageSink<Answer> = { push(chunk: Uint8Array): void; end(): Answer };

/** The memory allocated for a message from the length that a node claims. */
const MOST_ON_TRUST = 4 * 1024 * 1024;

/** Collects a whole message. A chunk may be a few bytes of a large socket buffer, so it's copied. */
export function wholeMessage<Answer>(
  read: (message: Uint8Array) => Answer,
): (expected?: number) => MessageSink<Answer> {
  return (expected = 0) => {
    let room = Buffer.allocUnsafe(Math.min(expected, MOST_ON_TRUST));
    let length = 0;
    return {
      push: (chunk) => {
        if (length + chunk.length > room.length) {
          const wider = Buffer.allocUnsafe(Math.max(room.length * 2, length + chunk.length));
          room.copy(wider, 0, 0, length);
          room = wider;
        }
        room.set(chunk, length);
        length += chunk.length;
      },
      end: () => {
        const message = room.subarray(0, length);
        room = Buffer.alloc(0);
        return read(message);
      },
    };
  };
}

/** Whether the question is about the irreversible chain, which java-tron serves on another port. */
export function isAboutSolid({ http }: Pick<Question<unknown>, 'http'>): boolean {
  return http.path.startsWith('/walletsolidity/');
}
