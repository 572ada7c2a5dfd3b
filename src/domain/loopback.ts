/** `localhost` and every address of the loopback interface, as text or as `URL` writes it: `127.0.0.1`, `::1`, `[::1]`. */
const LOOPBACK = /^(?:localhost|127(?:\.(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3}|::1|\[::1\])$/i;

/** Whether a host is this machine, whatever a name server says: `x.localhost` and `127.1.example.com` are asked of one. */
export function isLoopback(host: string): boolean {
  return LOOPBACK.test(host);
}

/** The same for a link that a browser opens: browsers ask no name server for `*.localhost` (RFC 6761). */
export function isLoopbackLink(host: string): boolean {
  return isLoopback(host) || /.\.localhost$/i.test(host);
}
