import type { JsonShape } from './json-reader.ts';

/**
 * Questions that have a substitute: infos say what logs say, single blocks what ranges of blocks say, and JSON what the bytes of infos say.
 * What becomes of such a question never costs the node: those of its kind wait, and all others go on.
 */
export type Substitutable = 'logs' | 'ranges' | 'bytes';

/** A question to a node, in the two languages that nodes speak. `read` throws on anything that does not answer it. */
export type Question<Answer> = {
  /** Absent where nothing else answers the question. */
  substitutable?: Substitutable;
  /** More bytes of an answer are not read; 4 MiB when absent. */
  maxBytes?: number;
  /** The kept parts of a JSON answer take no more memory than about this; 8 MiB when absent. */
  maxHeldBytes?: number;
  /** A healthy node may take so long at least, where that is longer than for others. */
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
  /** Less than `maxBytes`, for bytes are shorter than JSON. */
  maxBytes?: number;
  request: Uint8Array;
  /** Takes the answer's message in pieces, `length` bytes if the node is right. java-tron sends an empty message where it does not have the thing asked for. */
  newSink(length?: number): MessageSink<Answer>;
};

export type MessageSink<Answer> = { push(chunk: Uint8Array): void; end(): Answer };

/** The memory that is taken for a message on the word of a node alone. */
const MOST_ON_TRUST = 4 * 1024 * 1024;

/** Takes a whole message at once. A piece may be a few bytes of a large buffer of the socket, so it is copied. */
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

/** A question is about the irreversible chain, which java-tron serves at another port, or about the whole one. */
export function isAboutSolid({ http }: Pick<Question<unknown>, 'http'>): boolean {
  return http.path.startsWith('/walletsolidity/');
}
