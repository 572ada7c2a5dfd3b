/**
 * Parses a URL, or returns `null`. `URL.canParse` would be shorter, but it has a bug in Node 20: after some thousand calls, it returns
 * `false` for any text that contains a Latin-1 letter outside ASCII, such as `https://bücher.example`.
 */
export function parseUrl(text: string): URL | null {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

/** Matches `localhost` and every loopback address, as plain text or as `URL` writes it: `127.0.0.1`, `::1`, `[::1]`. */
const LOOPBACK = /^(?:localhost|127(?:\.(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3}|::1|\[::1\])$/i;

/** Whether a host certainly is this machine. `x.localhost` and `127.1.example.com` don't count, because a name server resolves them. */
export function isLoopback(host: string): boolean {
  return LOOPBACK.test(host);
}

/** Like `isLoopback`, but for links that a browser opens, because browsers never ask a name server for `*.localhost` (RFC 6761). */
export function isLoopbackLink(host: string): boolean {
  return isLoopback(host) || /.\.localhost$/i.test(host);
}
