import type { IncomingMessage } from 'node:http';

/**
 * Returns why a request isn't from a program on this machine, or null if it is. Any website can make a browser on this machine send
 * requests to a loopback port. The site can use its own name as soon as the name resolves to 127.0.0.1 (`Host: evil.example:40123`), or
 * this machine's name with the site as `Origin`, or any body that is declared as a form or text. `host` is the listener's configured host.
 */
export function foreignRequest({ method, headersDistinct, socket }: IncomingMessage, host: string): string | null {
  const { host: hosts = [], origin: origins = [], 'content-type': types = [] } = headersDistinct;
  const [named = ''] = hosts;
  if (hosts.length !== 1 || !isOurs(named, host, socket.localPort)) {
    return `the header Host (${shown(hosts)}) does not name this listener`;
  }
  if (origins.some((origin) => origin !== `http://${named}`)) {
    return `the request comes from a page with a different origin (${shown(origins)})`;
  }
  if (method === 'POST' && !(types.length === 1 && JSON_TYPE.test(types[0] ?? ''))) {
    return `the content type (${shown(types)}) is not application/json`;
  }
  return null;
}

const LOOPBACK = /^(?:localhost|127(?:\.(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3}|::1|\[::1\])$/i;

/** Whether a host is certainly this machine. `x.localhost` doesn't count, because a name server resolves it. */
export const isLoopback = (host: string): boolean => LOOPBACK.test(host);

/** Matches `application/json`, with or without parameters: `application/json; charset=utf-8`. */
const JSON_TYPE = /^application\/json[ \t]*(?:;|$)/i;

/**
 * Returns whether a value such as `127.0.0.1:40123` means this machine, or the listener's configured host, with the listener's port. The
 * default port is 80.
 */
function isOurs(named: string, host: string, port: number | undefined): boolean {
  const [, name = '', written = '80'] = /^(\[[^\]]*\]|[^:]*)(?::(\d{1,5}))?$/.exec(named.toLowerCase()) ?? [];
  const reported = host.includes(':') ? `[${host}]` : host;
  return Number(written) === port && (isLoopback(name) || name === reported.toLowerCase());
}

const MAX_SHOWN_CHARS = 100;

function shown(values: readonly string[]): string {
  return values.length === 0 ? 'absent' : values.join(', ').slice(0, MAX_SHOWN_CHARS);
}
