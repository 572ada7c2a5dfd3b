import { readApiKey } from '../../domain/api-key.ts';
import { EVENT_TYPES } from '../../domain/event.ts';
import { decodeId, encodeId } from '../../domain/ids.ts';
import { CliError } from '../cli-error.ts';
import { clip } from '../clip.ts';
import { loadConfig } from '../load-config.ts';
import { readSandboxFile, type SandboxFile } from '../sandbox/sandbox-file.ts';
import type { Terminal } from '../terminal.ts';

export type ListenOptions = {
  forwardTo?: string;
  apiKey?: string;
  server?: string;
  allowHttp?: boolean;
  events?: string[];
  after?: string;
  printSecret?: boolean;
};

export type ListenSettings = {
  /** Without a trailing slash. */
  server: string;
  apiKey: string;
  keyId: string;
  forwardTo: URL;
  /** `null`: all. */
  types: ReadonlySet<string> | null;
  /** Where to begin, in place of where the last run ended: after an event, before the first one, or with the next new one. */
  after: { kind: 'event'; id: string } | { kind: 'beginning' } | { kind: 'latest' } | null;
};

/** Checks everything that can be checked without a request. Errors: `INVALID_ARGUMENT`; the message never holds the key. */
export async function readListenSettings(terminal: Terminal, options: ListenOptions): Promise<ListenSettings> {
  if (options.forwardTo === undefined) {
    throw invalid('--forward-to is missing: name the URL of your handler, such as http://localhost:3000/hook');
  }
  const forwardTo = readForwardTo(options.forwardTo);
  const { events, after } = options;
  const types = events === undefined ? null : new Set(events.map(readType));
  const from = after === undefined ? null : readAfter(after);
  const named = { server: options.server ?? given(terminal, 'QUITTANCE_SERVER'), apiKey: namedKey(terminal, options) };
  const sandbox = named.server === null || named.apiKey === null ? await findSandbox(terminal) : null;
  const server = readServer(named.server ?? sandbox?.baseUrl ?? missingServer(), options.allowHttp === true);
  // The key of the sandbox is for the sandbox alone.
  const isSandbox = sandbox !== null && new URL(server).origin === new URL(sandbox.baseUrl).origin;
  const key = readTestKey(
    named.apiKey ??
      (isSandbox
        ? sandbox.apiKey
        : missingKey(`${server} is not the sandbox of this data directory, whose key is known`)),
  );
  return { server, ...key, forwardTo, types, after: from };
}

/** The key that `--print-secret` derives from. Nothing is asked for it. */
export async function readListenKey(terminal: Terminal, options: ListenOptions): Promise<string> {
  const key = namedKey(terminal, options) ?? (await findSandbox(terminal))?.apiKey;
  return readTestKey(key ?? missingKey('no sandbox runs on this data directory')).apiKey;
}

function namedKey(terminal: Terminal, { apiKey }: ListenOptions): string | null {
  return apiKey ?? given(terminal, 'QUITTANCE_API_KEY');
}

function given({ env }: Terminal, variable: string): string | null {
  return env[variable]?.trim() || null;
}

async function findSandbox(terminal: Terminal): Promise<SandboxFile | null> {
  const { dataDir } = loadConfig(terminal);
  return readSandboxFile(dataDir).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'SANDBOX_NOT_RUNNING') return null;
    throw error;
  });
}

function missingServer(): never {
  throw invalid(
    '--server and QUITTANCE_SERVER are missing, and no sandbox runs on this data directory: name your Quittance server',
  );
}

function missingKey(why: string): never {
  throw invalid(
    `--api-key and QUITTANCE_API_KEY are missing, and ${why}: set the variable to a key of a test project (qt_test_…)`,
  );
}

function readTestKey(text: string): { apiKey: string; keyId: string } {
  if (text.startsWith('qt_live_')) {
    throw invalid(
      'the key is a live one (qt_live_…): payments of the main network are not forwarded to a developer’s machine. Use a key of a test project (qt_test_…); live events belong to an endpoint of "quittance webhook add"',
    );
  }
  const key = readApiKey(text);
  if (key !== null) return { apiKey: text, keyId: encodeId('key', key.keyUuid) };
  throw invalid(
    `the API key (${text.length} characters, not shown) is none of Quittance: it is "qt_test_" and 75 characters, as "quittance key create" showed it; a letter may be missing or wrong`,
  );
}

function readForwardTo(text: string): URL {
  const url = readUrl('--forward-to', text);
  // A fragment is never sent.
  url.hash = '';
  return url;
}

function readServer(text: string, allowHttp: boolean): string {
  const url = readUrl('the server', text);
  if (url.search !== '' || url.hash !== '')
    throw invalid(`the server ${clip(text)} has a query or a fragment: leave it out`);
  if (url.protocol === 'http:' && !allowHttp && !isLoopback(url.hostname)) {
    throw invalid(
      `the server ${clip(text)} is http:// on another machine, where anybody between could read the API key: use https://, or --allow-http if the way there is safe`,
    );
  }
  return url.origin + url.pathname.replace(/\/+$/, '');
}

function readUrl(what: string, text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !['http:', 'https:'].includes(url.protocol) || text !== text.trim()) {
    throw invalid(`${what} is ${clip(text)}: it takes a URL that begins with http:// or https://`);
  }
  if (url.username !== '' || url.password !== '') {
    throw invalid(`${what} holds a user name or a password (not shown): leave it out`);
  }
  return url;
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname);
}

function readType(text: string): string {
  if ((EVENT_TYPES as readonly string[]).includes(text)) return text;
  throw invalid(`--events holds ${clip(text)}: choose among ${EVENT_TYPES.join(', ')}`);
}

function readAfter(text: string): ListenSettings['after'] {
  if (text === 'beginning' || text === 'latest') return { kind: text };
  if (decodeId('evt', text) !== null) return { kind: 'event', id: text };
  throw invalid(`--after is ${clip(text)}: it takes the id of an event (evt_…), beginning or latest`);
}

function invalid(message: string): CliError {
  return new CliError('INVALID_ARGUMENT', message);
}
