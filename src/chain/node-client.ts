import { Agent, request } from 'undici';
import { AppError } from '../domain/errors.ts';

/** A TRON full node's HTTP API. `post` answers parsed JSON or throws `NODE_REFUSED` (always worth a retry). */
export type NodeClient = {
  url: string;
  post(path: string, body: object): Promise<unknown>;
  close(): Promise<void>;
};

/**
 * A block may hold 2 MB of transactions, which the node writes as several times that in JSON; an answer beyond this is
 * not one of a sane node.
 */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
/** One answer takes milliseconds on a healthy node; a hang must not cost more than a few blocks. */
const ANSWER_TIMEOUT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 5000;
/** As much of a refusal as a person needs to recognise it. */
const SHOWN_CHARACTERS = 200;

export type NodeClientOptions = {
  url: string;
  /** Sent as `TRON-PRO-API-KEY`. */
  apiKey: string | null;
  timeoutMs?: number;
  onOutcome?(outcome: 'ok' | 'refused'): void;
};

export function createNodeClient({ url, apiKey, timeoutMs, onOutcome }: NodeClientOptions): NodeClient {
  const agent = new Agent({ connections: 8, connect: { timeout: CONNECT_TIMEOUT_MS }, keepAliveTimeout: 10_000 });
  const headers = { 'content-type': 'application/json', ...(apiKey === null ? {} : { 'TRON-PRO-API-KEY': apiKey }) };
  const origin = url.replace(/\/+$/, '');
  return {
    url: origin,
    post: async (path, body) => {
      // One signal covers connecting, waiting and a dripping body.
      const signal = AbortSignal.timeout(timeoutMs ?? ANSWER_TIMEOUT_MS);
      try {
        const options = { method: 'POST', dispatcher: agent, headers, body: JSON.stringify(body), signal } as const;
        const response = await request(origin + path, options);
        const answer = parseAnswer(response.statusCode, await readBounded(response.body));
        onOutcome?.('ok');
        return answer;
      } catch (error) {
        onOutcome?.('refused');
        throw refusal(origin + path, error);
      }
    },
    close: () => agent.destroy(),
  };
}

async function readBounded(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) throw new Error(`the answer is larger than ${MAX_ANSWER_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/**
 * Refusals come with any status and any body. Two seen with status 200:
 * `{"Error":"class java.lang.RuntimeException : lack of computing resources"}` and the bare text
 * `this API is closed because this node is a lite fullnode`.
 */
function parseAnswer(status: number, text: string): unknown {
  if (status !== 200) throw new Error(`HTTP ${status}: ${shown(text)}`);
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {
    throw new Error(`not JSON: ${shown(text)}`);
  }
  if (typeof answer !== 'object' || answer === null) throw new Error(`neither object nor array: ${shown(text)}`);
  if ('Error' in answer) throw new Error(`error: ${shown(String(answer.Error))}`);
  return answer;
}

function shown(text: string): string {
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
}

function refusal(where: string, error: unknown): AppError {
  const reason = error instanceof Error ? error.message || error.name : String(error);
  return new AppError('NODE_REFUSED', `${where}: ${reason}`, { retryable: true, cause: error });
}
