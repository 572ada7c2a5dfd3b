import { joinBytes } from '../read-bounded.ts';
import { copyBytes, MAX_BODY_BYTES } from '../webhooks/raw-body.ts';
import { createReceiver, type ReceivedBody, type WebhookHandler, type WebhookOptions } from './receive.ts';

/** The parts of a Node.js request that are used. Requests of Express and of Next.js pages have them. */
export type NodeRequest = {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body?: unknown;
  /** Hosting platforms that parse every body keep the raw bytes here. */
  readonly rawBody?: unknown;
  readonly readableDidRead?: boolean;
  on(event: 'data', listener: (chunk: unknown) => void): unknown;
  on(event: 'end', listener: () => void): unknown;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'close', listener: () => void): unknown;
};

export type NodeResponse = {
  readonly headersSent: boolean;
  statusCode: number;
  setHeader(name: string, value: string): unknown;
  end(body: string): unknown;
};

/**
 * Returns the route handler of a webhook endpoint for Express: `app.post('/webhooks/quittance', quittanceWebhook({ secret }, handler))`.
 * Mount it before `express.json()` or after `express.raw()`. Works with any Node.js HTTP server.
 */
export function quittanceWebhook<Request extends NodeRequest = NodeRequest>(
  options: WebhookOptions<Request>,
  handler: WebhookHandler<Request>,
): (request: Request, response: NodeResponse) => Promise<void> {
  const receive = createReceiver(options, handler);
  return async (request, response) => {
    const received = await readBody(request).catch(() => null);
    // The sender has disconnected, so there's no one to respond to.
    if (received === null) return;
    const answer = await receive(received, request.headers, request);
    // Something else, such as a timeout, has responded in the meantime. An error thrown here could end the process.
    if (response.headersSent) return;
    response.statusCode = answer.status;
    for (const [name, value] of Object.entries(answer.headers)) response.setHeader(name, value);
    // Don't wait for the rest of the body.
    if (received.kind === 'too-large') response.setHeader('connection', 'close');
    response.end(answer.body);
  };
}

async function readBody(request: NodeRequest): Promise<ReceivedBody> {
  const bytes = copyBytes(request.body) ?? copyBytes(request.rawBody);
  if (bytes !== null) return { kind: 'read', body: bytes };
  // A parser has already consumed the bytes.
  if (request.readableDidRead === true) return { kind: 'read', body: request.body };
  if (Number(request.headers['content-length']) > MAX_BODY_BYTES) return { kind: 'too-large' };
  return readStream(request);
}

function readStream(request: NodeRequest): Promise<ReceivedBody> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  return new Promise((resolve, reject) => {
    request.on('data', (chunk) => {
      // A chunk is a string if someone called setEncoding.
      const bytes = copyBytes(chunk);
      if (bytes === null) return resolve({ kind: 'read', body: chunk });
      size += bytes.byteLength;
      // Chunks beyond the limit are dropped.
      if (size <= MAX_BODY_BYTES) chunks.push(bytes);
      else resolve({ kind: 'too-large' });
    });
    request.on('end', () => resolve({ kind: 'read', body: joinBytes(chunks, size) }));
    request.on('error', reject);
    request.on('close', () => reject(new Error('the request ended before its body was complete')));
  });
}
