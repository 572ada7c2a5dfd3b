import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Ledger } from '../chain/ledger.ts';
import { ParameterError, type Parameters } from '../chain/parameters.ts';
import { faultsAt } from '../faults/faults.ts';
import { refuseWith, send } from '../faults/refusals.ts';
import { jsonPieces } from '../wire/json-text.ts';
import { CONTROL_PATH, type ControlAnswer, forkOnRequest, isFromThisMachine } from './control.ts';
import { ENDPOINTS } from './endpoints.ts';
import { foreignRequest } from './foreign-request.ts';
import { JSON_RPC_PATH, unreadableJson } from './json-rpc.ts';
import { answerRequest, type Sickness } from './node-answers.ts';

/** Enables `POST /devnet/fork`. A branch ends `slotMs` after the head that it replaces. */
export interface Control {
  readonly slotMs: number;
}

/** A node's APIs. On a real node, each of them has its own port. */
export type HttpApi = '/wallet' | '/walletsolidity' | typeof JSON_RPC_PATH;

interface HttpContext {
  readonly ledger: Ledger;
  readonly now: () => number;
  readonly control: Control | null;
  readonly apis: readonly HttpApi[];
  readonly sickness: () => Sickness;
}

export interface Listener {
  readonly port: number;
  /** Closes the port and every connection. */
  stop(): Promise<void>;
}

/** java-tron's `maxMessageSize`. Larger bodies are refused. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;

/** This library reads a body before java-tron's own parser does, so parsing errors contain the library's class name. */
const JSON_ERROR = 'com.alibaba.fastjson.JSONException';

/** These fields are text in a query string, but numbers and booleans in a body. */
const NUMBERS = ['num', 'startNum', 'endNum'];
const BOOLEANS = ['detail', 'visible'];

/**
 * While thousands of blocks are being made, the process is blocked. Idle connections must survive that, or a client's next request fails.
 */
const KEEP_ALIVE_MS = 75_000;

/** Serves a node's JSON API. Port 0 selects a free port. */
export async function startHttpServer(
  context: HttpContext,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<Listener> {
  const server = createServer((request, response) => {
    handle(request, response, { ...context, host }).catch((error: unknown) => {
      // Only a bug in the devnet itself leads here. The page shows the error to the developer.
      if (!response.headersSent) response.writeHead(500, { 'content-type': 'text/html' });
      response.end(`<pre>${error instanceof Error ? error.stack : String(error)}</pre>`);
    });
  });
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  return {
    port: await listen(server, host, port),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function handle(
  request: IncomingMessage,
  response: ServerResponse,
  context: HttpContext & { readonly host: string },
): Promise<void> {
  const { pathname: path, searchParams } = new URL(request.url ?? '/', 'http://devnet.invalid');
  const sickness = context.sickness();
  const faults = faultsAt(sickness.faults, path);
  const body = await readBody(request);
  if (refuseWith(faults, response)) return;
  const { ledger, now, control } = context;
  if (control !== null && path === CONTROL_PATH && request.method === 'POST') {
    if (!isFromThisMachine(request.socket.remoteAddress)) return refuseMethod(response, 'GET', path);
    const foreign = foreignRequest(request, context.host);
    return answerControl(response, () =>
      foreign === null
        ? forkOnRequest(ledger, control.slotMs, parametersOf(body ?? ''))
        : { status: 403, body: { error: foreign } },
    );
  }
  const isServed = ENDPOINTS.has(path) && context.apis.some((api) => `${path}/`.startsWith(`${api}/`));
  const isJsonRpc = path === JSON_RPC_PATH;
  const isMethodKnown = request.method === 'POST' || (request.method === 'GET' && !isJsonRpc);
  if (!isServed || !isMethodKnown) {
    return refuseMethod(response, request.method ?? '', path);
  }
  let answer: unknown;
  try {
    if (body === null) {
      throw new ParameterError(`body size is too big, the limit is ${MAX_BODY_BYTES}`, 'java.lang.Exception');
    }
    const parameters = request.method === 'GET' ? queryParameters(searchParams) : parametersOf(body, isJsonRpc);
    answer = answerRequest({ ledger, now, sickness }, path, parameters);
  } catch (error) {
    if (!(error instanceof ParameterError)) throw error;
    answer = isJsonRpc ? unreadableJson() : { Error: error.nodeText };
  }
  if (isJsonRpc) response.setHeader('content-type', 'application/json-rpc');
  await send(faults, response, jsonPieces(answer));
}

function answerControl(response: ServerResponse, run: () => ControlAnswer): void {
  let answer: { status: number; body: object };
  try {
    answer = run();
  } catch (error) {
    if (!(error instanceof ParameterError)) throw error;
    answer = { status: 400, body: { error: error.message } };
  }
  response.writeHead(answer.status, { 'content-type': 'application/json' });
  response.end(`${JSON.stringify(answer.body)}\n`);
}

/** Returns the body as text, or null if it's too large. In that case, the rest is read and discarded. */
async function readBody(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length <= MAX_BODY_BYTES) chunks.push(chunk);
  }
  return length > MAX_BODY_BYTES ? null : Buffer.concat(chunks).toString('utf8');
}

/** Returns a JSON body's fields, or its list if a list is allowed. An empty body has no fields. */
function parametersOf(body: string, isListAllowed = false): Parameters {
  if (body.trim() === '') return {};
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch (error) {
    throw new ParameterError(`syntax error, ${error instanceof Error ? error.message : ''}`, JSON_ERROR);
  }
  if (typeof parsed === 'object' && parsed !== null && (isListAllowed || !Array.isArray(parsed))) {
    return parsed as Parameters;
  }
  throw new ParameterError('can not cast to JSONObject.', JSON_ERROR);
}

/** Returns a query string's fields, with the same types as in a JSON body. */
function queryParameters(query: URLSearchParams): Parameters {
  const entries = [...query].map(([name, text]) => {
    if (NUMBERS.includes(name) && /^-?\d{1,15}$/.test(text)) return [name, Number(text)] as const;
    return [name, BOOLEANS.includes(name) ? text === 'true' : text] as const;
  });
  return Object.fromEntries(entries);
}

function listen(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

/** Responds as Jetty does if no servlet matches: a GET request to an unknown path isn't found, and any other method isn't supported. */
function refuseMethod(response: ServerResponse, method: string, path: string): void {
  const [status, message] =
    method === 'GET' && path !== JSON_RPC_PATH
      ? [404, 'Not Found']
      : [405, `HTTP method ${method} is not supported by this URL`];
  const title = `${status} ${message}`;
  response.writeHead(status, { 'content-type': 'text/html;charset=iso-8859-1' });
  if (method !== 'GET' && method !== 'POST') return void response.end();
  response.end(`<html>
<head>
<meta http-equiv="Content-Type" content="text/html;charset=ISO-8859-1"/>
<title>Error ${title}</title>
</head>
<body><h2>HTTP ERROR ${title}</h2>
<table>
<tr><th>URI:</th><td>${encodeURI(path)}</td></tr>
<tr><th>STATUS:</th><td>${status}</td></tr>
<tr><th>MESSAGE:</th><td>${message}</td></tr>
<tr><th>SERVLET:</th><td>org.eclipse.jetty.servlet.ServletHandler$Default404Servlet-722b2728</td></tr>
</table>
<hr/><a href="https://eclipse.org/jetty">Powered by Jetty:// 9.4.53.v20231009</a><hr/>

</body>
</html>
`);
}
