export type QuittanceOptions = {
  /** The project's secret key. Use it only on a server, never in a browser. */
  apiKey: string;
  /** The URL of the API, for example `https://pay.example.com`. Plain http is accepted only for this machine. */
  baseUrl: string;
  /** Replaces the global `fetch`. */
  fetch?: typeof fetch | undefined;
  /** Timeout of one attempt in milliseconds, from connecting to the last byte. Default: 10,000. */
  timeoutMs?: number | undefined;
  /** Number of attempts after the first one. Default: 3, maximum: 10. */
  maxRetries?: number | undefined;
  /** Allows sending the key over plain http to other machines, for networks that are encrypted in another way. */
  allowInsecureHttp?: boolean | undefined;
};

export type Settings = {
  apiKey: string;
  /** Has no trailing slash. */
  baseUrl: string;
  send: typeof fetch;
  timeoutMs: number;
  maxRetries: number;
};

/** Checks the options and fills in the defaults. Throws a TypeError that contains no value that could be a secret. */
export function readSettings(options: QuittanceOptions): Settings {
  const { apiKey, timeoutMs = 10_000, maxRetries = 3 } = options;
  // The key is checked here, because an error from `fetch` about an invalid header contains the header's value.
  if (typeof apiKey !== 'string' || !isWholeKey(apiKey)) {
    throw new TypeError('apiKey must be the whole secret key of the project (qt_…)');
  }
  if (!(timeoutMs >= 1 && timeoutMs <= 600_000)) throw new TypeError('timeoutMs must be from 1 to 600000');
  if (!(Number.isInteger(maxRetries) && maxRetries >= 0 && maxRetries <= 10)) {
    throw new TypeError('maxRetries must be a whole number from 0 to 10');
  }
  return {
    apiKey,
    baseUrl: readBaseUrl(options.baseUrl, options.allowInsecureHttp === true),
    // The function is looked up at each call and called without an object, as workers require.
    send: options.fetch ?? ((input, init) => fetch(input, init)),
    timeoutMs,
    maxRetries,
  };
}

function readBaseUrl(text: string, isInsecureAllowed: boolean): string {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new TypeError('baseUrl must be a URL such as https://pay.example.com');
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new TypeError('baseUrl must not contain a user, password, query or fragment');
  }
  const isThisMachine = /^(localhost|.+\.localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && (isThisMachine || isInsecureAllowed))) {
    throw new TypeError(
      `baseUrl must begin with https:// (not ${url.protocol}//), because every request carries the secret key; allowInsecureHttp allows http://`,
    );
  }
  return url.origin + url.pathname.replace(/\/+$/, '');
}

/** The last six characters are the CRC-32 of all others in base62, so a truncated or mistyped key is detected before it's sent. */
function isWholeKey(key: string): boolean {
  if (!/^qt_(live|test)_\w{75}$/.test(key)) return false;
  let crc = -1;
  for (const character of key.slice(0, -6)) {
    crc ^= character.charCodeAt(0);
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  let rest = ~crc >>> 0;
  return [...key.slice(-6)].reverse().every((character) => {
    const digit = rest % 62;
    rest = Math.floor(rest / 62);
    // The digits are 0 to 9, A to Z, a to z.
    return String.fromCharCode(digit + (digit < 10 ? 48 : digit < 36 ? 55 : 61)) === character;
  });
}
