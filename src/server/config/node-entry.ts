import { isIP } from 'node:net';
import { API_KEY_HEADER, type NodeSpec, urlsOf } from '../../core/domain/node.ts';
import { parseUrl } from '../../core/domain/url.ts';

type ParsedNode = { kind: 'ok'; node: NodeSpec } | { kind: 'invalid'; reason: string };

/** The limits for a TronGrid key: https://developers.tron.network/reference/rate-limits. Without a key TronGrid allows less. */
const TRONGRID = { host: 'trongrid.io', requestsPerSecond: 15, requestsPerDay: 100_000, solidityPort: '50052' };
/** The ports of java-tron's gRPC services (`node.rpc.port`, `node.rpc.solidityPort`). */
const GRPC = { port: '50051', solidityPort: '50061' };

/**
 * Parses one entry in a node list: a URL whose fragment, which is never sent, may contain options. Examples:
 * `grpc://node.example.com:50051#operator=ours`, `http://node.example.com:8090#solidity=http://node.example.com:8091`,
 * `https://api.trongrid.io#rps=15&daily=100000&key=…`. A reason contains no key, password or path.
 */
export function parseNode(text: string): ParsedNode {
  const shown = showNode(text);
  const invalid = (what: Problem): ParsedNode => ({ kind: 'invalid', reason: `${shown} ${what}` });
  if (text === '') return { kind: 'invalid', reason: 'an entry is empty: remove the extra comma' };
  const [base = '', fragment, ...rest] = text.split('#');
  const main = readUrl(base);
  if (typeof main === 'string') return invalid(main);
  if (rest.length > 0) return invalid('has more than one "#": encode "#" inside a value as %23');
  const options = parseOptions(fragment ?? '');
  if (typeof options === 'string') return invalid(options);
  const { operator, rps, daily, key, header } = options;
  if (header !== undefined && key === undefined)
    return invalid('has a header option without key=: add the API key to send in that header');
  const sides = readSides(main, options);
  if (typeof sides === 'string') return invalid(sides);
  const isTronGrid = isUnder(main.hostname, TRONGRID.host);
  const limit = (value: string | undefined, fallback: number) =>
    value === undefined ? (isTronGrid ? fallback : null) : Number(value);
  return {
    kind: 'ok',
    node: {
      ...sides,
      url: main.url,
      operator: operator?.toLowerCase() ?? operatorOf(main),
      apiKey: key ?? null,
      apiKeyHeader: header?.toLowerCase() ?? API_KEY_HEADER,
      requestsPerSecond: limit(rps, TRONGRID.requestsPerSecond),
      requestsPerDay: limit(daily, TRONGRID.requestsPerDay),
    },
  };
}

/** What is wrong with an entry; it completes "the entry …". */
type Problem = string;
type NodeUrl = { url: string; isGrpc: boolean; hostname: string; host: string; port: string };

/** gRPC has neither a default port nor a path. The WHATWG parser parses hosts only for schemes such as `http`. */
function readUrl(text: string): NodeUrl | Problem {
  const [, scheme, tls = ''] = /^(grpc)(s?):\/\//i.exec(text) ?? [];
  const isGrpc = scheme !== undefined;
  const url = httpUrl(isGrpc ? text.replace(/^grpcs?/i, tls === '' ? 'http' : 'https') : text);
  if (url === null) {
    return 'is not a node URL; use a form such as grpcs://node.example.com:50051 or https://api.trongrid.io';
  }
  if (url.username !== '' || url.password !== '') {
    return 'contains a user name or password: remove it (an API key goes into the option #key=)';
  }
  if (text.includes('?')) return 'has a query: remove the "?" and everything after it; options go after a "#"';
  const { hostname, host } = url;
  if (!isGrpc) return { url: url.href.replace(/\/+$/, ''), isGrpc, hostname, host, port: url.port };
  const port = /:(\d{1,5})\/*$/.exec(text)?.[1];
  if (port === undefined || url.pathname !== '/') {
    return 'must end with the gRPC port, as in grpcs://node.example.com:50051';
  }
  const place = `${hostname}:${port}`;
  return { url: `grpc${tls}://${place}`, isGrpc, hostname, host: place, port };
}

/** Reads the URLs for a node's other APIs: the solidity API, and an HTTP node's gRPC and JSON-RPC APIs. */
function readSides(
  main: NodeUrl,
  { solidity, grpc, jsonrpc }: Options,
): Pick<NodeSpec, 'solidityUrl' | 'grpc' | 'jsonRpcUrl'> | Problem {
  const side = solidity === undefined ? null : readUrl(solidity);
  if (typeof side === 'string') return `has an invalid solidity option: it ${side}`;
  if (side !== null && side.isGrpc !== main.isGrpc) {
    return `has a solidity option of a different kind: use a ${main.isGrpc ? 'grpc' : 'http'}:// URL`;
  }
  const usual = main.isGrpc ? usualSolidityUrl(main) : main.url;
  const solidityUrl = side?.url ?? usual;
  if (solidityUrl === null) {
    return 'has an unusual port: also set the port of its API for irreversible blocks, as in #solidity=grpc://node.example.com:50061';
  }
  const rpc = jsonrpc === undefined || jsonrpc === OFF ? null : readUrl(jsonrpc);
  if (typeof rpc === 'string') return `has an invalid jsonrpc option: it ${rpc}`;
  if (rpc !== null && (main.isGrpc || rpc.isGrpc)) {
    return 'has an invalid jsonrpc option: it must be the http:// URL at which an http:// node serves /jsonrpc';
  }
  const jsonRpcUrl = rpc?.url.replace(/\/jsonrpc$/, '') ?? (main.isGrpc || jsonrpc === OFF ? null : main.url);
  if (grpc === undefined) return { solidityUrl, grpc: null, jsonRpcUrl };
  const twin = readUrl(grpc);
  if (typeof twin === 'string') return `has an invalid grpc option: it ${twin}`;
  if (main.isGrpc || !twin.isGrpc) return 'has an invalid grpc option: it must be the grpc:// URL of an http:// node';
  const twinSolidityUrl = usualSolidityUrl(twin);
  if (twinSolidityUrl === null) {
    return `has an invalid grpc option: it must use port ${GRPC.port}; add a node on another port as a separate entry, grpc://host:port#solidity=grpc://host:port`;
  }
  return { solidityUrl, grpc: { url: twin.url, solidityUrl: twinSolidityUrl }, jsonRpcUrl };
}

function usualSolidityUrl({ url, port, hostname }: NodeUrl): string | null {
  if (port !== GRPC.port) return null;
  const solidityPort = isUnder(hostname, TRONGRID.host) ? TRONGRID.solidityPort : GRPC.solidityPort;
  return url.replace(/\d+$/, solidityPort);
}

/** Whether TronGrid runs all of a node's APIs so that the TronGrid key may be sent to it. */
export function isTronGridNode(spec: NodeSpec): boolean {
  return urlsOf(spec).every((each) => isUnder(new URL(each).hostname, TRONGRID.host));
}

/** Parses a complete http(s) URL, or returns `null`. WHATWG parsing alone would accept `http:/host` and `https:host`. */
export function httpUrl(text: string): URL | null {
  return /^https?:\/\/[^/\\\s]/i.test(text) && !/\s/.test(text) ? parseUrl(text) : null;
}

type OptionName = 'operator' | 'rps' | 'daily' | 'key' | 'header' | 'solidity' | 'grpc' | 'jsonrpc';

/** The value for the option `jsonrpc` that turns JSON-RPC off. */
const OFF = 'off';
/** A key can't be sent in one of these headers, because it would change the request, or wouldn't arrive. */
const RESERVED_HEADERS =
  /^(?:connection|content-.*|expect|grpc-.*|host|keep-alive|te|trailer|transfer-encoding|upgrade|user-agent)$/i;

const OPTIONS: Record<OptionName, { accepts(value: string): boolean; takes: string }> = {
  operator: {
    accepts: (value) => /^[a-z0-9][a-z0-9._:-]{0,59}$/i.test(value),
    takes: 'a name of 1 to 60 letters, digits, dots, colons, dashes and underscores',
  },
  rps: {
    accepts: (value) => /^\d{1,4}(\.\d{1,3})?$/.test(value) && Number(value) > 0,
    takes: 'requests per second, more than 0 and less than 10000',
  },
  daily: { accepts: (value) => /^[1-9]\d{0,8}$/.test(value), takes: 'requests per day, 1 to 999999999' },
  key: {
    accepts: (value) => /^[!-~](?:[ -~]{0,198}[!-~])?$/.test(value),
    takes: '1 to 200 visible ASCII characters, and spaces (%20) between them',
  },
  header: {
    accepts: (value) => /^[a-z0-9][a-z0-9-]{0,59}$/i.test(value) && !RESERVED_HEADERS.test(value),
    takes: 'the name of the header that carries the key, such as x-token or authorization: letters, digits and dashes',
  },
  solidity: { accepts: isUrlLike, takes: 'the URL of its API for irreversible blocks' },
  grpc: { accepts: isUrlLike, takes: 'the grpc:// URL of the same node' },
  jsonrpc: {
    accepts: (value) => value === OFF || isUrlLike(value),
    takes: 'the http:// URL at which the same node serves /jsonrpc, or off',
  },
};

function isUrlLike(value: string): boolean {
  return /^[a-z]+:\/\/[!-~]{1,300}$/i.test(value);
}

type Options = Partial<Record<OptionName, string>>;

function parseOptions(fragment: string): Options | Problem {
  const values: Options = {};
  for (const part of fragment === '' ? [] : fragment.split('&')) {
    const at = part.indexOf('=');
    const name = part.slice(0, Math.max(0, at));
    // Don't show an unknown option: it may be a key that was pasted without its name.
    if (!isOption(name)) {
      const known = Object.keys(OPTIONS).join('=, ');
      return `has an unknown option after the "#": use ${known}=, separated by "&"`;
    }
    if (values[name] !== undefined) return `has the ${name} option twice: keep one`;
    const value = decode(part.slice(at + 1));
    if (value === null || !OPTIONS[name].accepts(value)) {
      return `has an invalid ${name} option: use ${OPTIONS[name].takes}`;
    }
    values[name] = value;
  }
  return values;
}

function isOption(name: string): name is OptionName {
  return Object.hasOwn(OPTIONS, name);
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/**
 * Returns the registered name of a host: its last two labels. Two names under `co.uk` count as one operator. This errs on the safe side,
 * because Quittance then asks one more operator. For IP addresses and localhost, returns host and port.
 */
function operatorOf({ hostname, host }: NodeUrl): string {
  const name = hostname.replace(/\.$/, '').toLowerCase();
  if (isIP(name.replace(/^\[|\]$/g, '')) !== 0 || isUnder(name, 'localhost')) return host.toLowerCase();
  return name.split('.').slice(-2).join('.');
}

function isUnder(host: string, domain: string): boolean {
  const name = host.replace(/\.$/, '').toLowerCase();
  return name === domain || name.endsWith(`.${domain}`);
}

/**
 * Shows an entry in a message. Only the scheme and host are certainly not secret, because a token may be in the path, before an `@` or
 * after the `#`. If a key contains a comma, the part after it looks like a separate entry.
 */
function showNode(text: string): string {
  const scheme = /^[a-z][a-z0-9+.-]{0,20}:\/\//i.exec(text)?.[0];
  const rest = text.slice(scheme?.length ?? 0);
  const at = rest.lastIndexOf('@');
  const afterHost = rest.search(/[/?#\\]/);
  const isAmbiguous = at >= 0 && afterHost >= 0 && afterHost < at;
  const [host = ''] = isAmbiguous ? [] : rest.slice(at + 1).split(/[/?#\\]/);
  if (scheme === undefined && !/^[a-z0-9-]{1,40}(\.[a-z0-9-]{1,40})+(:\d+)?$/i.test(host)) return 'an entry';
  const user = at >= 0 ? '…@' : '';
  const end = isAmbiguous || afterHost >= 0 ? '/…' : '';
  return JSON.stringify(`${scheme ?? ''}${isAmbiguous ? '…' : `${user}${host.slice(0, 80)}`}${end}`);
}
