import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { CONTROL_PATH, type ControlAnswer, forkOnRequest, isFromThisMachine } from './control.ts';
import { ENDPOINTS } from './endpoints.ts';
import { type Fault, faultsAt } from './faults.ts';
import { jsonPieces } from './json-text.ts';
import type { Ledger } from './ledger.ts';
import { answerRequest, fallSick, type Sickness } from './node-answers.ts';
import { ParameterError, type Parameters } from './parameters.ts';
import { refuseWith, send } from './refusals.ts';

/** A node that serves a ledger over HTTP. Several may serve the same one, each with its own faults. */
export interface NodeServer {
  /** Example: `http://127.0.0.1:40123`. */
  readonly url: string;
  /** Replaces the faults; without arguments the node is healthy again. Requests that hang already stay so until the node stops. */
  setFault(...faults: readonly Fault[]): void;
  /** Closes the port and every connection. */
  stop(): Promise<void>;
}

/** Makes the node obey `POST /devnet/fork`; a branch ends `slotMs` after the head it replaces. */
interface Control {
  readonly slotMs: number;
}

interface NodeContext {
  readonly ledger: Ledger;
  readonly now: () => number;
  readonly control: Control | null;
  readonly sickness: () => Sickness;
}

/** java-tron's `maxMessageSize`: it reads no larger body. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;

/** Making thousands of blocks at once holds up the process; idle connections must outlive that, or a client's next request fails. */
const KEEP_ALIVE_MS = 75_000;

/** Jetty's pages for a path or a method that no servlet answers. */
const NOT_FOUND = jettyPage(404, 'Not Found');
const METHOD_NOT_ALLOWED = jettyPage(405, 'HTTP method is not supported by this URL');
const SERVER_ERROR = jettyPage(500, 'Server Error');

/** Starts a node; port 0 takes a free one. */
export async function startNodeServer({
  ledger,
  now,
  host,
  port,
  control,
}: {
  readonly ledger: Ledger;
  readonly now: () => number;
  readonly host: string;
  readonly port: number;
  readonly control: Control | null;
}): Promise<NodeServer> {
  let sickness = fallSick(ledger, []);
  const context: NodeContext = { ledger, now, control, sickness: () => sickness };
  const server = createServer((request, response) => {
    handle(request, response, context).catch((error: unknown) => {
      // Only a fault of the devnet itself gets here; the page tells the developer what it was.
      if (!response.headersSent) response.writeHead(500, { 'content-type': 'text/html' });
      response.end(`${SERVER_ERROR}<pre>${error instanceof Error ? error.stack : String(error)}</pre>`);
    });
  });
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  await listen(server, host, port);
  const { port: taken } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${taken}`,
    setFault(...next) {
      sickness = fallSick(ledger, next);
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function handle(request: IncomingMessage, response: ServerResponse, context: NodeContext): Promise<void> {
  const { pathname: path, searchParams } = new URL(request.url ?? '/', 'http://devnet.invalid');
  const sickness = context.sickness();
  const faults = faultsAt(sickness.faults, path);
  const body = await readBody(request);
  if (refuseWith(faults, response)) return;
  const { ledger, now, control } = context;
  if (control !== null && path === CONTROL_PATH && request.method === 'POST') {
    const isAllowed = isFromThisMachine(request.socket.remoteAddress);
    return isAllowed
      ? answerControl(response, () => forkOnRequest(ledger, control.slotMs, parametersOf(body ?? '')))
      : page(response, 404, NOT_FOUND);
  }
  if (!ENDPOINTS.has(path)) return page(response, 404, NOT_FOUND);
  if (request.method !== 'GET' && request.method !== 'POST') return page(response, 405, METHOD_NOT_ALLOWED);
  let answer: unknown;
  try {
    if (body === null) throw new ParameterError(`body size is too big, the limit is ${MAX_BODY_BYTES}`);
    const parameters = request.method === 'GET' ? Object.fromEntries(searchParams) : parametersOf(body);
    answer = answerRequest({ ledger, now, sickness }, path, parameters);
  } catch (error) {
    if (!(error instanceof ParameterError)) throw error;
    answer = { Error: `class java.lang.IllegalArgumentException : ${error.message}` };
  }
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

/** The body as text, or null when it is too big; the rest of such a body is read and thrown away. */
async function readBody(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length <= MAX_BODY_BYTES) chunks.push(chunk);
  }
  return length > MAX_BODY_BYTES ? null : Buffer.concat(chunks).toString('utf8');
}

/** The fields of a JSON body; no body is no fields. */
function parametersOf(body: string): Parameters {
  if (body.trim() === '') return {};
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch (error) {
    throw new ParameterError(`syntax error, the body is not JSON: ${error instanceof Error ? error.message : ''}`);
  }
  if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return parsed as Parameters;
  throw new ParameterError('the body is not a JSON object');
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

function page(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { 'content-type': 'text/html;charset=iso-8859-1' });
  response.end(body);
}

function jettyPage(status: number, message: string): string {
  return `<html>\n<head>\n<meta http-equiv="Content-Type" content="text/html;charset=ISO-8859-1"/>\n<title>Error ${status} ${message}</title>\n</head>\n<body><h2>HTTP ERROR ${status} ${message}</h2>\n</body>\n</html>\n`;
}
