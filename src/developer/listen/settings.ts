import { readApiKey } from '../../core/domain/api-key.ts';
import { AppError } from '../../core/domain/errors.ts';
import { EVENT_TYPES } from '../../core/domain/event.ts';
import { decodeId, encodeId } from '../../core/domain/ids.ts';
import { isLoopback } from '../../core/domain/url.ts';
import { clip } from '../../faces/operator/input/problems.ts';
import { httpUrl } from '../../server/config/node-entry.ts';
import { findSandboxFile } from '../sandbox/sandbox-file.ts';

export type ListenOptions = {
  forwardTo?: string | undefined;
  apiKey?: string | undefined;
  server?: string | undefined;
  allowHttp?: true | undefined;
  events?: readonly string[] | undefined;
  after?: string | undefined;
};

/** The sources for settings that aren't given as options. `dataDir` is called only if its sandbox is needed. */
type Surroundings = { env: NodeJS.ProcessEnv; dataDir(): string };

export type ListenSettings = {
  /** This URL doesn't have a trailing slash. */
  server: string;
  apiKey: string;
  keyId: string;
  forwardTo: URL;
  /** `null` means all. */
  types: ReadonlySet<string> | null;
  /** The position to begin at, unless it's where the last run ended: after an event, before the first one, or with the next new one. */
  after: { kind: 'event'; id: string } | { kind: 'beginning' } | { kind: 'latest' } | null;
};

/** Checks everything that doesn't need a request. Throws `INVALID_ARGUMENT`; the message never contains the key. */
export async function readListenSettings(options: ListenOptions & Surroundings): Promise<ListenSettings> {
  const { events, after, env } = options;
  if (options.forwardTo === undefined) {
    throw invalid("--forward-to is missing: set it to your handler's URL, such as http://localhost:3000/hook");
  }
  const forwardTo = readUrl('--forward-to', options.forwardTo);
  // Clients never send a fragment.
  forwardTo.hash = '';
  const types = events === undefined ? null : new Set(events.map(readType));
  const from = after === undefined ? null : readAfter(after);
  const named = { server: options.server ?? (env['QUITTANCE_URL']?.trim() || null), apiKey: namedKey(options) };
  const sandbox = named.server === null || named.apiKey === null ? await findSandboxFile(options.dataDir()) : null;
  const serverText = named.server ?? sandbox?.baseUrl;
  if (serverText === undefined) {
    throw invalid(
      '--server and QUITTANCE_URL are missing, and no sandbox is running on this data directory: set either to the URL of your Quittance server',
    );
  }
  const server = readServer(serverText, options.allowHttp === true);
  // The sandbox's key is only sent to the sandbox.
  const isSandbox = sandbox !== null && new URL(server).origin === new URL(sandbox.baseUrl).origin;
  const why = `${server} is not this data directory's sandbox, so its key is unknown`;
  const key = readTestKey(named.apiKey ?? (isSandbox ? sandbox.apiKey : null), why);
  return { server, ...key, forwardTo, types, after: from };
}

/** Returns the key that `--print-secret` derives the secret from, without asking a server. */
export async function readListenKey(options: ListenOptions & Surroundings): Promise<string> {
  const key = namedKey(options) ?? (await findSandboxFile(options.dataDir()))?.apiKey ?? null;
  return readTestKey(key, 'no sandbox is running on this data directory').apiKey;
}

function namedKey({ apiKey, env }: ListenOptions & Surroundings): string | null {
  return apiKey ?? (env['QUITTANCE_API_KEY']?.trim() || null);
}

/** `why` explains why no other key can be used if none is given. */
function readTestKey(text: string | null, why: string): { apiKey: string; keyId: string } {
  if (text === null) {
    throw invalid(
      `--api-key and QUITTANCE_API_KEY are missing, and ${why}: set QUITTANCE_API_KEY to a test project key (qt_test_…)`,
    );
  }
  if (text.startsWith('qt_live_')) {
    throw invalid(
      'the key is a live key (qt_live_…): payments on the main network are not forwarded to a developer’s machine. Use a test project key (qt_test_…). For live events, add an endpoint with "quittance webhook add"',
    );
  }
  const key = readApiKey(text);
  if (key !== null) return { apiKey: text, keyId: encodeId('key', key.keyUuid) };
  throw invalid(
    `the API key (${text.length} characters, not shown) is not a Quittance key: a key is "qt_test_" followed by 75 characters, as shown by "quittance key create". A character may be missing or wrong`,
  );
}

function readServer(text: string, allowHttp: boolean): string {
  const url = readUrl('the server', text);
  if (url.search !== '' || url.hash !== '')
    throw invalid(`the server ${clip(text)} has a query or a fragment: remove it`);
  if (url.protocol === 'http:' && !allowHttp && !isLoopback(url.hostname)) {
    throw invalid(
      `the server ${clip(text)} uses http:// to another machine, so anyone on the network path could read the API key: use https://, or --allow-http if the path is safe`,
    );
  }
  return url.origin + url.pathname.replace(/\/+$/, '');
}

function readUrl(what: string, text: string): URL {
  const url = httpUrl(text);
  if (url === null) throw invalid(`${what} is ${clip(text)}: use a URL that starts with http:// or https://`);
  if (url.username === '' && url.password === '') return url;
  throw invalid(`${what} contains a user name or a password (not shown): remove it`);
}

function readType(text: string): string {
  if ((EVENT_TYPES as readonly string[]).includes(text)) return text;
  throw invalid(`--events has the unknown type ${clip(text)}: choose from ${EVENT_TYPES.join(', ')}`);
}

function readAfter(text: string): ListenSettings['after'] {
  if (text === 'beginning' || text === 'latest') return { kind: text };
  if (decodeId('evt', text) !== null) return { kind: 'event', id: text };
  throw invalid(`--after is ${clip(text)}: use an event id (evt_…), beginning or latest`);
}

function invalid(message: string): AppError {
  return new AppError('INVALID_ARGUMENT', message);
}
