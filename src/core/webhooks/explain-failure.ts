/**
 * Explains an attempt without a response: a class, a colon, and the failure in plain words. The classes never change, because diagnoses
 * depend on them: `timeout`, `dns`, `connection_refused`, `connection_lost`, `unreachable`, `tls`, `target_refused`, `redirect`,
 * `http_<status>`, `invalid_answer`, `invalid_url`, `network`, `unsigned`. For an adapter's shop there is also `not_acknowledged`, and for
 * tests and notifications `web_page`.
 */
export function explainError(error: unknown): string {
  const { code, name, message } = (error ?? {}) as { code?: unknown; name?: unknown; message?: unknown };
  if (code === 'TARGET_REFUSED') return `target_refused: ${String(message)}`;
  const label = String(code ?? name);
  if (!/^[A-Za-z0-9_]{1,60}$/.test(label)) return UNKNOWN;
  return `${EXPLANATIONS.find(([pattern]) => pattern.test(label))?.[1] ?? UNKNOWN} (${label})`;
}

/** Explains a response other than 2xx, in the same form. */
export function explainStatus(status: number): string {
  if (status >= 300 && status < 400) {
    return `redirect: the endpoint returned ${status}, and redirects are not followed; register the final URL`;
  }
  return `http_${status}: the endpoint returned ${status}${STATUSES[status] ?? (status >= 500 ? SERVER_ERROR : '')}, but only 2xx counts as delivered`;
}

const UNKNOWN = 'network: the attempt failed';
const SERVER_ERROR = ' (an error on its side)';
const STATUSES: Readonly<Record<number, string>> = {
  401: ' (it requires a login)',
  403: ' (it forbids the request)',
  404: ' (nothing exists at its path)',
  405: ' (its path does not accept POST)',
  410: ' (it is permanently gone)',
  413: ' (it does not accept a body of this size)',
  429: ' (it received too many requests)',
};

/** Error codes of Node.js, OpenSSL and undici, with their meaning for the endpoint's operator. The first match is used. */
const EXPLANATIONS: readonly (readonly [RegExp, string])[] = [
  [/^(UND_ERR_CONNECT_TIMEOUT|ETIMEDOUT)$/, 'timeout: no connection in time'],
  [/^UND_ERR_(HEADERS|BODY)_TIMEOUT$/, 'timeout: no response in time'],
  [/^ECONNREFUSED$/, 'connection_refused: nothing is listening at the address of the endpoint'],
  [/^ENOTFOUND$/, 'dns: the name of the endpoint does not resolve'],
  [/^EAI_/, 'dns: the name of the endpoint could not be looked up'],
  [/^(ECONNRESET|EPIPE|UND_ERR_SOCKET)$/, 'connection_lost: the connection was closed before a response arrived'],
  [/^(EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENETDOWN)$/, 'unreachable: no route to the endpoint'],
  [/^CERT_HAS_EXPIRED$/, 'tls: the certificate has expired'],
  [/^CERT_NOT_YET_VALID$/, 'tls: the certificate is not valid yet; check the clocks'],
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, 'tls: the certificate is for another name'],
  [/^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN)$/, 'tls: the certificate is self-signed'],
  [
    /^(UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT(_LOCALLY)?)$/,
    'tls: the certificate chain is incomplete, or no well-known authority signed it',
  ],
  [/^CERT_REVOKED$/, 'tls: the certificate was revoked'],
  [/(CERT|TLS|SSL|SIGNATURE|^EPROTO$)/, 'tls: no secure connection'],
  [/^(HPE_|HTTPParserError$|UND_ERR_HEADERS_OVERFLOW|UND_ERR_RES)/, 'invalid_answer: the response is not valid HTTP'],
];
