import type { JsonShape } from './json-reader.ts';

/**
 * The kinds of questions that have a substitute: infos can replace logs, single blocks can replace ranges, and JSON can replace the bytes
 * of infos. If such a question fails, only questions of the same kind are paused, never the node.
 */
export type Substitutable = 'logs' | 'ranges' | 'bytes';

/** A question to a node, for both protocols that nodes support. `read` throws on anything that isn't an answer to it. */
export type Question<Answer> = {
  /** Absent if the question has no substitute. */
  substitutable?: Substitutable;
  /** Size limit of the answer. Default: 4 MiB. */
  maxBytes?: number;
  /** Approximate memory limit for the kept parts of a JSON answer. Default: 8 MiB. */
  maxHeldBytes?: number;
  /** Minimum timeout of a question that needs longer than others. */
  timeoutMs?: number;
  http: {
    path: `/wallet/${string}` | `/walletsolidity/${string}` | '/jsonrpc';
    body: object;
    shape?: JsonShape;
    read(json: unknown): Answer;
  };
  /** `null` if gRPC has no such call. */
  grpc: GrpcCall<Answer> | null;
};

export type GrpcCall<Answer> = {
  path: `/protocol.Wallet/${string}` | `/protocol.WalletSolidity/${string}`;
  /** Lower than the question's `maxBytes`, because bytes are shorter than JSON. */
  maxBytes?: number;
  request: Uint8Array;
  /**
   * Creates a sink that receives the answer's message in chunks; `length` is its size in bytes as claimed by the node. java-tron sends an
   * empty message if the requested object doesn't exist.
   */
  newSink(length?: number): MessageSink<Answer>;
};

export type MessageSink<Answer> = { push(chunk: Uint8Array): void; end(): Answer };

/** Maximum memory to allocate for a message just because a node claims that length. */
const MOST_ON_TRUST = 4 * 1024 * 1024;

/** Collects a whole message. Chunks are copied, because a chunk may be only a few bytes of a large socket buffer. */
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

/** Whether the question is about the irreversible chain, which java-tron serves on a separate port. */
export function isAboutSolid({ http }: Pick<Question<unknown>, 'http'>): boolean {
  return http.path.startsWith('/walletsolidity/');
}
