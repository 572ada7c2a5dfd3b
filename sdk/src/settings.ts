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
  if (typeof apiKey !== 'string' || !/^[!-~]{1,255}$/.test(apiKey)) {
    throw new TypeError('apiKey must be the secret key of the project, as it was shown when it was created');
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
      `baseUrl must begin with https:// (it begins with ${url.protocol}//), for every request carries the secret key; http:// is for this machine only, unless allowInsecureHttp is true`,
    );
  }
  return url.origin + url.pathname.replace(/\/+$/, '');
}
