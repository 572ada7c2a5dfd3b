import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
} from 'node:http2';
import type { NodeSpec, NodeUrls } from '../../domain/node.ts';
import { BadMessage } from './message-reader.ts';
import {
  AnswerTooLarge,
  afterReached,
  type Caller,
  type CallLimits,
  type GrpcCall,
  isAboutSolid,
  type MessageSink,
  type Question,
  readNodePause,
  shown,
  TransportRefusal,
} from './node.ts';

/**
 * The number of bytes that a node may send before it gets an acknowledgement. With Node.js's default of 64 KiB, a node with 100 ms latency
 * could send only 640 KB/s. This size allows the full bandwidth.
 */
const WINDOW_BYTES = 4 * 1024 * 1024;
/** Maximum number of concurrent requests. They share one connection and its window; servers accept a hundred or more per connection. */
export const MAX_STREAMS = 32;
/** Each message starts with one byte for compression, and four for its length. */
const PREFIX_BYTES = 5;

/** gRPC status codes (grpc.io, "Status codes and their use"). */
const OK = 0;
const UNIMPLEMENTED = 12;
/** PERMISSION_DENIED, RESOURCE_EXHAUSTED and UNAUTHENTICATED: the node refuses the caller or the request rate. */
const LIMITING_CODES: readonly number[] = [7, 8, 16];

type GrpcQuestion<Answer> = Question<Answer> & { grpc: GrpcCall<Answer> };

/** Uses a TRON node's gRPC API, which returns raw bytes. The API key is sent as metadata. */
export function createGrpcCaller(
  { url, solidityUrl }: NodeUrls,
  { apiKey, apiKeyHeader }: Pick<NodeSpec, 'apiKey' | 'apiKeyHeader'>,
): Caller {
  const [full, solid] = [createLine(url), createLine(solidityUrl)];
  const metadata = apiKey === null ? {} : { [apiKeyHeader]: apiKey };
  return {
    ask: async (question, limits) => {
      const { grpc } = question;
      if (grpc === null) {
        const reason = `gRPC has no ${question.http.path}`;
        throw new TransportRefusal({ reason, retryAfterMs: null, wasReached: false, isLimit: false });
      }
      return call((isAboutSolid(question) ? solid : full).session(), metadata, { ...question, grpc }, limits);
    },
    close: async () => {
      full.close();
      solid.close();
    },
  };
}

/** Opens a connection when it's needed, and reopens it after a loss. java-tron closes idle connections and doesn't allow pings on them. */
function createLine(url: string) {
  let session: ClientHttp2Session | null = null;
  return {
    session: (): ClientHttp2Session => {
      if (session !== null && !session.closed && !session.destroyed) return session;
      const opened = connect(url.replace(/^grpc/, 'http'), {
        settings: { initialWindowSize: WINDOW_BYTES, enablePush: false },
      });
      opened.once('connect', () => opened.setLocalWindowSize(WINDOW_BYTES * 2));
      // Each call gets the error through its own stream.
      opened.on('error', () => undefined);
      opened.once('goaway', () => opened.close());
      // Every pending call has a timer that keeps the process alive, so the connection itself doesn't have to.
      opened.unref();
      session = opened;
      return opened;
    },
    close: () => session?.destroy(),
  };
}

function call<Answer>(
  session: ClientHttp2Session,
  metadata: Record<string, string>,
  question: GrpcQuestion<Answer>,
  { maxBytes, signal, onBytes }: CallLimits,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const stream = session.request({
      ':method': 'POST',
      ':path': question.grpc.path,
      'content-type': 'application/grpc',
      te: 'trailers',
      'user-agent': 'quittance',
      ...metadata,
    });
    const unwrap = createUnwrapper(question, Math.min(maxBytes, question.grpc.maxBytes ?? maxBytes));
    let headers: IncomingHttpHeaders & IncomingHttpStatusHeader = {};
    let trailers: IncomingHttpHeaders = {};
    const fail = (error: unknown) => {
      reject(error);
      stream.close(constants.NGHTTP2_CANCEL);
    };
    const onAbort = () => {
      fail(new Error('the deadline passed'));
      // Nothing has arrived, so the connection may be dead without either side having noticed. The next call opens a new one.
      if (headers[':status'] === undefined) session.close();
    };
    signal.addEventListener('abort', onAbort, { once: true });
    stream.once('response', (received) => {
      headers = received;
    });
    stream.once('trailers', (received) => {
      trailers = received;
    });
    stream.on('data', (chunk: Buffer) => {
      try {
        onBytes(chunk.length);
        if (headers[':status'] === 200) unwrap.push(chunk);
      } catch (error) {
        fail(error);
      }
    });
    // If the connection failed, Node.js only reports that it cancelled the stream, and puts the reason into the cause.
    stream.once('error', (error) => {
      const reason = error.cause ?? error;
      fail(headers[':status'] === undefined ? reason : afterReached(reason));
    });
    stream.once('close', () => {
      signal.removeEventListener('abort', onAbort);
      try {
        // If the response has no body, its status is in the headers.
        resolve(answerOf(stream, headers, 'grpc-status' in trailers ? trailers : headers, question, unwrap.end));
      } catch (error) {
        reject(error);
      }
    });
    stream.end(frame(question.grpc.request));
  });
}

function answerOf<Answer>(
  stream: ClientHttp2Stream,
  headers: IncomingHttpHeaders & IncomingHttpStatusHeader,
  ending: IncomingHttpHeaders,
  question: Question<Answer>,
  end: () => Answer,
): Answer {
  const httpStatus = headers[':status'];
  const text = String(ending['grpc-status'] ?? '');
  const code = /^\d{1,2}$/.test(text) ? Number(text) : null;
  if (httpStatus === 200 && code === OK) return end();
  const detail = shown(decodeMessage(String(ending['grpc-message'] ?? '')));
  const retryAfterMs = readNodePause(headers as Record<string, string | string[] | undefined>, detail);
  const isLimit = retryAfterMs !== null || (code !== null && LIMITING_CODES.includes(code)) || httpStatus === 429;
  const status =
    code === null ? `HTTP ${httpStatus ?? `nothing (stream ended with ${stream.rstCode})`}` : `gRPC status ${code}`;
  const hint =
    code === UNIMPLEMENTED && isAboutSolid(question)
      ? ' (java-tron serves irreversible blocks on a different port, usually 50061: set it with #solidity=)'
      : '';
  const wasReached = httpStatus !== undefined;
  const reason = `${status}: ${detail}${hint}`;
  throw new TransportRefusal({ reason, retryAfterMs, wasReached, isLimit, wasHungUp: !wasReached });
}

/** `grpc-message` is percent-encoded. */
function decodeMessage(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function frame(message: Uint8Array): Buffer {
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

/** Removes the prefix from the only message of an answer. */
function createUnwrapper<Answer>(question: GrpcQuestion<Answer>, maxBytes: number) {
  let sink: MessageSink<Answer> | null = null;
  const prefix = Buffer.alloc(PREFIX_BYTES);
  let have = 0;
  let left = 0;
  return {
    push: (chunk: Uint8Array) => {
      let at = 0;
      while (have < PREFIX_BYTES && at < chunk.length) {
        prefix[have] = chunk[at] ?? 0;
        have += 1;
        at += 1;
        if (have < PREFIX_BYTES) continue;
        if (prefix[0] !== 0)
          throw new BadMessage('the response is compressed, but the request did not allow compression');
        left = prefix.readUInt32BE(1);
        if (left > maxBytes) throw new AnswerTooLarge(`the response has ${left} bytes, more than ${maxBytes}`);
        sink = question.grpc.newSink(left);
      }
      if (at === chunk.length) return;
      left -= chunk.length - at;
      if (left < 0) throw new BadMessage('more than one message');
      sink?.push(at === 0 ? chunk : chunk.subarray(at));
    },
    end: (): Answer => {
      if (sink === null || left > 0) throw new BadMessage('the response ends too early');
      return sink.end();
    },
  };
}
