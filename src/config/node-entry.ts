import { isIP } from 'node:net';
import type { NodeSpec } from '../domain/node.ts';
import { httpUrl } from './url-problems.ts';

export type ParsedNode = { kind: 'ok'; node: NodeSpec } | { kind: 'invalid'; reason: string };

/** What TronGrid allows to a key: https://developers.tron.network/reference/rate-limits. Without one it allows less. */
const TRONGRID = { host: 'trongrid.io', requestsPerSecond: 15, requestsPerDay: 100_000 };

/**
 * Reads one entry of a list of nodes: a URL whose fragment, which is never sent, may carry options. Example:
 * `https://api.trongrid.io#operator=trongrid&rps=15&daily=100000&key=…`. A reason holds no key, password or path.
 */
export function parseNode(text: string): ParsedNode {
  const shown = showNode(text);
  const invalid = (what: string): ParsedNode => ({ kind: 'invalid', reason: `${shown} ${what}` });
  if (text === '') return { kind: 'invalid', reason: 'an entry is empty: remove the extra comma' };
  const [base = '', fragment, ...rest] = text.split('#');
  const url = httpUrl(base);
  if (url === null) {
    return invalid('is not an http:// or https:// URL; write for example https://api.trongrid.io');
  }
  if (url.username !== '' || url.password !== '') {
    return invalid('holds a user name or password: remove it (the option #key= takes an API key)');
  }
  if (base.includes('?')) return invalid('has a query: remove everything from the "?" on; options stand after a "#"');
  if (rest.length > 0) return invalid('has more than one "#": write "#" inside a value as %23');
  const options = parseOptions(fragment ?? '');
  if (options.kind === 'invalid') return invalid(options.reason);
  const { operator, rps, daily, key } = options.values;
  const isTronGrid = isUnder(url.hostname, TRONGRID.host);
  const limit = (value: string | undefined, fallback: number) =>
    value === undefined ? (isTronGrid ? fallback : null) : Number(value);
  return {
    kind: 'ok',
    node: {
      url: url.href.replace(/\/+$/, ''),
      operator: operator?.toLowerCase() ?? operatorOf(url),
      apiKey: key ?? null,
      requestsPerSecond: limit(rps, TRONGRID.requestsPerSecond),
      requestsPerDay: limit(daily, TRONGRID.requestsPerDay),
    },
  };
}

/** Whether TronGrid runs a node, so that its key may be sent there. */
export function isTronGridNode({ url }: NodeSpec): boolean {
  return isUnder(new URL(url).hostname, TRONGRID.host);
}

type OptionName = 'operator' | 'rps' | 'daily' | 'key';

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
  key: { accepts: (value) => /^[!-~]{1,200}$/.test(value), takes: '1 to 200 visible ASCII characters' },
};

type ParsedOptions = { kind: 'ok'; values: Partial<Record<OptionName, string>> } | { kind: 'invalid'; reason: string };

function parseOptions(fragment: string): ParsedOptions {
  const values: Partial<Record<OptionName, string>> = {};
  for (const part of fragment === '' ? [] : fragment.split('&')) {
    const at = part.indexOf('=');
    const name = part.slice(0, Math.max(0, at));
    // The text of an unknown option is not shown: it may be a key that was pasted without its name.
    if (!isOption(name)) {
      const known = Object.keys(OPTIONS).join('=, ');
      return { kind: 'invalid', reason: `has an unknown option after the "#": write ${known}=, separated by "&"` };
    }
    if (values[name] !== undefined) return { kind: 'invalid', reason: `has the option ${name} twice: keep one` };
    const value = decode(part.slice(at + 1));
    if (value === null || !OPTIONS[name].accepts(value)) {
      return { kind: 'invalid', reason: `has a wrong option ${name}: it takes ${OPTIONS[name].takes}` };
    }
    values[name] = value;
  }
  return { kind: 'ok', values };
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
 * The name under which a host looks registered: its last two labels. It takes two of `co.uk` for one, which errs on the
 * side of asking one more. Literal addresses and this machine tell nothing but host and port.
 */
function operatorOf(url: URL): string {
  const name = url.hostname.replace(/\.$/, '').toLowerCase();
  if (isIP(name.replace(/^\[|\]$/g, '')) !== 0 || isUnder(name, 'localhost')) return url.host.toLowerCase();
  return name.split('.').slice(-2).join('.');
}

function isUnder(host: string, domain: string): boolean {
  const name = host.replace(/\.$/, '').toLowerCase();
  return name === domain || name.endsWith(`.${domain}`);
}

/**
 * An entry for a message, of which only scheme and host are surely no secret: a token may stand in the path, before an `@`
 * or after the `#`, and what follows a comma inside of a key looks like an entry of its own.
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
