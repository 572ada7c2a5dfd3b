import { setImmediate as yieldToOthers } from 'node:timers/promises';
import type { NodeSpec } from '../../domain/node.ts';
import { Agent, request } from '../../runtime/http-agent.ts';
import { createAnswerReader } from './answer-reader.ts';
import type { Caller, CallLimits } from './caller.ts';
import { NotJson, TooMuchJson } from './json-reader.ts';
import { isAboutSolid, type Question } from './question.ts';
import { AnswerTooLarge, afterReached, readRetryAfter, shown, TransportRefusal } from './refusal.ts';

const CONNECT_TIMEOUT_MS = 5000;
/** Enough to read ahead while catching up, few enough for a provider that counts connections. */
export const MAX_CONNECTIONS = 16;
/** A node that refuses who asks, or how often, whatever is asked. */
const LIMITING_STATUSES: readonly number[] = [401, 403, 429];
const MAX_HELD_BYTES = 8 * 1024 * 1024;
/** Pieces that wait already come without a turn of the event loop between them: others get one after so much. */
const YIELD_BYTES = 512 * 1024;
/** Refusals are pages and short texts. */
const REFUSAL_BYTES = 16 * 1024;

type Body = AsyncIterable<Buffer>;
type ReadLimits = Pick<CallLimits, 'maxBytes' | 'onBytes'>;

/** Asks a TRON node's HTTP API. */
export function createHttpCaller({ url, solidityUrl, jsonRpcUrl, apiKey, apiKeyHeader }: NodeSpec): Caller {
  const agent = new Agent({
    connections: MAX_CONNECTIONS,
    connect: { timeout: CONNECT_TIMEOUT_MS },
    keepAliveTimeout: 10_000,
  });
  const headers = { 'content-type': 'application/json', ...(apiKey === null ? {} : { [apiKeyHeader]: apiKey }) };
  return {
    ask: async (question, limits) => {
      const { signal } = limits;
      const { path, body } = question.http;
      const base = path === '/jsonrpc' ? (jsonRpcUrl ?? url) : isAboutSolid(question) ? solidityUrl : url;
      const sent = { method: 'POST', headers, body: JSON.stringify(body), signal } as const;
      const response = await request(agent, base + path, sent);
      const { statusCode: status } = response;
      const brokenOff = (error: unknown) => {
        throw afterReached(error);
      };
      if (status === 200) return readAnswer(question, response.body, limits, response.headers).catch(brokenOff);
      const text = await readBeginning(response.body).catch(brokenOff);
      const retryAfterMs = readRetryAfter(response.headers, text);
      const isLimit = retryAfterMs !== null || LIMITING_STATUSES.includes(status);
      const reason = `HTTP ${status}: ${shown(text)}${explain(status, question, url === solidityUrl)}`;
      throw new TransportRefusal({ reason, retryAfterMs, wasReached: true, isLimit });
    },
    close: () => agent.destroy(),
  };
}

/** A plain java-tron serves its two APIs at two ports, and answers 404 or 405 in HTML at the wrong one. */
function explain(status: number, question: Question<unknown>, isOnePlace: boolean): string {
  if ((status !== 404 && status !== 405) || !isOnePlace || question.http.path === '/jsonrpc') return '';
  const api = isAboutSolid(question) ? '/walletsolidity' : '/wallet';
  return ` (it does not serve ${api} here: a java-tron of its own serves /wallet at one port and /walletsolidity at another; write both, as in http://host:8090#solidity=http://host:8091)`;
}

/**
 * A refusal comes with any status and any body. Two seen with status 200: `{"Error":"class java.lang.RuntimeException : lack of computing
 * resources"}` and the bare text `this API is closed because this node is a lite fullnode`.
 */
export async function readAnswer<Answer>(
  question: Question<Answer>,
  body: Body,
  { maxBytes, onBytes }: ReadLimits,
  headers: Record<string, string | string[] | undefined>,
): Promise<Answer> {
  const { shape = {}, read } = question.http;
  const reader = createAnswerReader(shape, question.maxHeldBytes ?? MAX_HELD_BYTES);
  let beginning = '';
  let bytes = 0;
  let unyielded = 0;
  const refuse = (what: string) => {
    const retryAfterMs = readRetryAfter(headers, beginning);
    const reason = `${what}: ${shown(beginning)}`;
    return new TransportRefusal({ reason, retryAfterMs, wasReached: true, isLimit: retryAfterMs !== null });
  };
  try {
    for await (const chunk of body) {
      bytes += chunk.length;
      onBytes(chunk.length);
      if (beginning.length < REFUSAL_BYTES) beginning += chunk.toString('latin1', 0, REFUSAL_BYTES);
      if (bytes > maxBytes) throw new AnswerTooLarge(`the answer is larger than ${maxBytes} bytes`);
      reader.push(chunk);
      unyielded += chunk.length;
      if (unyielded < YIELD_BYTES) continue;
      unyielded = 0;
      await yieldToOthers();
    }
    const answer = reader.end();
    if (typeof answer !== 'object' || answer === null) throw refuse('neither object nor array');
    if ('Error' in answer) throw refuse(`error: ${String(answer.Error)}`.slice(0, REFUSAL_BYTES));
    return read(answer);
  } catch (error) {
    if (error instanceof NotJson) throw refuse(`not JSON (${error.message})`);
    if (error instanceof TooMuchJson) throw new AnswerTooLarge(error.message);
    throw error;
  }
}

async function readBeginning(body: Body): Promise<string> {
  let text = '';
  for await (const chunk of body) {
    text += chunk.toString('latin1');
    if (text.length > REFUSAL_BYTES) break;
  }
  return text;
}
