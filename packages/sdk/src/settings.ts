export type QuittanceOptions = {
  /** The project's secret key. It belongs on a server, never in a browser. */
  apiKey: string;
  /** Where the API is, for example `https://pay.example.com`. Plain http is refused but for this machine. */
  baseUrl: string;
  /** Another `fetch` than the global one. */
  fetch?: typeof fetch | undefined;
  /** For one attempt, from connecting to the last byte; 10,000 by default. */
  timeoutMs?: number | undefined;
  /** Further attempts after the first; 3 by default, at most 10. */
  maxRetries?: number | undefined;
  /** Sends the key over plain http to other machines, for a network that is encrypted by other means. */
  allowInsecureHttp?: boolean | undefined;
};

export type Settings = {
  apiKey: string;
  /** Without a slash at the end. */
  baseUrl: string;
  send: typeof fetch;
  timeoutMs: number;
  maxRetries: number;
};

/** Checks the options, with defaults. Throws a TypeError that holds no value that could be a secret. */
export function readSettings(options: QuittanceOptions): Settings {
  const { apiKey, timeoutMs = 10_000, maxRetries = 3 } = options;
  // Checked here, because `fetch` repeats a header that it refuses in its error.
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
    // Found at each call, and called without an object, as workers demand.
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
    throw new TypeError('baseUrl must hold no user, password, query or fragment');
  }
  const isThisMachine = /^(localhost|.+\.localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && (isThisMachine || isInsecureAllowed))) {
    throw new TypeError(
      `baseUrl must begin with https:// (not ${url.protocol}//), for every request carries the secret key; allowInsecureHttp allows http://`,
    );
  }
  return url.origin + url.pathname.replace(/\/+$/, '');
}

/** The last six characters are the CRC-32 of all before, in base62: a key that was cut off, or typed, is told before it is sent. */
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
    // 0 to 9, A to Z, a to z.
    return String.fromCharCode(digit + (digit < 10 ? 48 : digit < 36 ? 55 : 61)) === character;
  });
}
