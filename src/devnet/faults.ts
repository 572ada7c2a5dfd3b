import type { ServerResponse } from 'node:http';

/**
 * The ways a node can be sick. `truncated` cuts the JSON in half, `hang` never answers, `reset` breaks the connection. The last
 * five answer sound JSON that is wrong: `empty-infos`, `missing-info` (the last one) and `swapped-infos` (the first two) change
 * `gettransactioninfobyblocknum`, `empty-block` takes the transactions out of blocks, and `lag` answers as of `blocks` ago.
 */
type FaultKind =
  | 'error-200'
  | 'bare-text'
  | 'html'
  | 'suspended-403'
  | 'not-found-404'
  | 'too-large-413'
  | 'limited-429'
  | 'unavailable-503'
  | 'truncated'
  | 'hang'
  | 'reset'
  | 'empty-infos'
  | 'missing-info'
  | 'swapped-infos'
  | 'empty-block'
  | 'lag';

export interface Fault {
  readonly kind: FaultKind;
  /** Only these paths are sick (`/walletsolidity/getblock`); all are when absent. */
  readonly paths?: readonly string[];
  /** For `lag`: how far behind, 10 when absent. */
  readonly blocks?: number;
}

const DEFAULT_LAG_BLOCKS = 10;

/** What nodes and the proxies before them really answer, byte for byte. */
const REFUSALS: ReadonlyMap<FaultKind, { status: number; type: string; body: string }> = new Map([
  ['error-200', json(200, '{"Error":"class java.lang.IllegalAccessException : lack of computing resources"}')],
  ['bare-text', { status: 200, type: 'text/plain', body: 'this API is closed because this node is a lite fullnode' }],
  [
    'html',
    html(
      502,
      '<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n',
    ),
  ],
  [
    'suspended-403',
    json(
      403,
      '{"Success":false,"Error":"The key exceeds the frequency limit(15), and the query server is suspended for 30s","StatusCode":403}',
    ),
  ],
  [
    'not-found-404',
    html(
      404,
      '<html>\n<head>\n<title>Error 404 Not Found</title>\n</head>\n<body><h2>HTTP ERROR 404 Not Found</h2></body>\n</html>\n',
    ),
  ],
  [
    'too-large-413',
    html(413, '<html>\r\n<head><title>413 Request Entity Too Large</title></head>\r\n<body></body>\r\n</html>\r\n'),
  ],
  ['limited-429', json(429, '{"Error":"Too Many Requests"}')],
  [
    'unavailable-503',
    html(
      503,
      '<html><body><h1>503 Service Unavailable</h1>\nNo server is available to handle this request.\n</body></html>\n',
    ),
  ],
]);

/** The faults that concern a path. */
export function faultsAt(faults: readonly Fault[], path: string): readonly Fault[] {
  return faults.filter(({ paths }) => paths === undefined || paths.includes(path));
}

/** How many blocks behind a node with these faults is. */
export function lagBlocksOf(faults: readonly Fault[]): number {
  return Math.max(0, ...faults.map(({ kind, blocks = DEFAULT_LAG_BLOCKS }) => (kind === 'lag' ? blocks : 0)));
}

/** Answers in place of the node, or not at all; false when the node itself is to answer. */
export function refuseWith(faults: readonly Fault[], response: ServerResponse): boolean {
  for (const { kind } of faults) {
    if (kind === 'hang') return true;
    if (kind === 'reset') {
      response.socket?.resetAndDestroy();
      return true;
    }
    const refusal = REFUSALS.get(kind);
    if (refusal === undefined) continue;
    response.writeHead(refusal.status, { 'content-type': refusal.type });
    response.end(refusal.body);
    return true;
  }
  return false;
}

/** The answer of a node with these faults in place of the true one. */
export function distort(faults: readonly Fault[], path: string, answer: unknown): unknown {
  return faults.reduce((given: unknown, { kind }) => distortOnce(kind, path, given), answer);
}

/** The text of an answer, of which a node with the fault `truncated` sends only a half. */
export function cut(faults: readonly Fault[], body: string): string {
  return faults.some(({ kind }) => kind === 'truncated') ? body.slice(0, Math.floor(body.length / 2)) : body;
}

function distortOnce(kind: FaultKind, path: string, answer: unknown): unknown {
  if (path.endsWith('/gettransactioninfobyblocknum') && Array.isArray(answer)) {
    if (kind === 'empty-infos') return [];
    if (kind === 'missing-info') return answer.slice(0, -1);
    if (kind === 'swapped-infos') return [...answer.slice(0, 2).reverse(), ...answer.slice(2)];
  }
  return kind === 'empty-block' ? withoutTransactions(answer) : answer;
}

function withoutTransactions(answer: unknown): unknown {
  if (typeof answer !== 'object' || answer === null) return answer;
  if ('block' in answer && Array.isArray(answer.block)) return { block: answer.block.map(withoutTransactions) };
  if (!('blockID' in answer && 'transactions' in answer)) return answer;
  const { transactions: _taken, ...rest } = answer;
  return rest;
}

function json(status: number, body: string) {
  return { status, type: 'application/json', body };
}

function html(status: number, body: string) {
  return { status, type: 'text/html', body };
}
