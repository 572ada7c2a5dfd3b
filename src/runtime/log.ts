import { type DestinationStream, type LevelWithSilent, type Logger as PinoLogger, pino, stdTimeFunctions } from 'pino';
import { loggable } from './error-fields.ts';

export type Logger = PinoLogger;

/**
 * A JSON logger, one object per line, on standard output unless a destination is given. Of errors it shows a list of fields
 * (`error-fields.ts`), and of other objects of classes the name.
 * Secrets are removed twice: values under telling names (at any depth), and texts that look like a secret wherever they stand,
 * because an error's message, a stack or a URL carries them where no name tells.
 */
export function createLogger(options: { level: LevelWithSilent; destination?: DestinationStream }): Logger {
  const settings = {
    level: options.level,
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }), log: loggable },
    // Pino's own would take the fields that are left for the error itself, and add every other.
    serializers: { err: (described: unknown) => described },
    redact: { paths: REDACTED_PATHS, censor: REDACTED },
    hooks: { streamWrite: scrub },
  };
  return options.destination ? pino(settings, options.destination) : pino(settings);
}

const REDACTED = '[redacted]';

/** Names whose values never reach the log, in any letter case. */
const SECRET_NAMES = [
  'x-api-key',
  'apiKey',
  'api_key',
  'secret',
  'secrets',
  'webhookSecret',
  'webhook_secret',
  'signingSecret',
  'masterKey',
  'masterKeys',
  'master_key',
  'keyRing',
  'QUITTANCE_MASTER_KEY',
  'privateKey',
  'private_key',
  'mnemonic',
  'seed',
  'password',
  'passphrase',
  'authorization',
  'cookie',
  'set-cookie',
];

/** These paths catch values that are objects or arrays; strings are caught at any depth in `scrub`. Pino needs each depth spelled out. */
const REDACTED_PATHS = SECRET_NAMES.flatMap((name) =>
  ['', '*', '*.*', '*.*.*'].map((parent) => `${parent}["${name}"]`),
);

const names = SECRET_NAMES.join('|');

/**
 * Each pattern keeps its first group, which says what was removed. The line is JSON, so a quote inside a value reads `\"`. It holds texts
 * of others, so no pattern may take more time than in proportion to the length of any line.
 */
const SECRET_PATTERNS: readonly RegExp[] = [
  // {"apiKey":"…"}
  new RegExp(`("(?:${names})":")(?:[^"\\\\]|\\\\.)+`, 'gi'),
  // The same inside a text that holds JSON: {\"apiKey\":\"…\"}. It begins with one backslash: with all of a run it would be tried at each.
  new RegExp(`(\\\\"(?:${names})\\\\+"\\s*:\\s*\\\\+")[^"\\\\]+`, 'gi'),
  // qt_live_4fQ…, qt_test_… and qa_…
  /(\bq(?:t_(?:live|test)|a)_)[A-Za-z0-9_-]+/g,
  // whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw
  /(\bwhsec_)[A-Za-z0-9+/=_-]+/g,
  // QUITTANCE_MASTER_KEY=… of an environment, a unit file or a shell
  /(\bQUITTANCE_MASTER_KEY=)[^\s"'\\]+/gi,
  // postgres://user:password@host; a password may itself hold an @, so up to the last one before the next space, slash or quote.
  /(\bpostgres(?:ql)?:\/\/[^\s:@/"\\]*:)[^\s/"\\]+(?=@)/gi,
  // host=… password=…, and ?password=… in a URL
  /(\bpassword=)[^\s&"'\\]+/gi,
  // Authorization: Bearer …
  /(\b(?:bearer|basic) )[A-Za-z0-9._~+/=-]{8,}/gi,
];

/** A line is longer only if a text of others came into it uncut. */
const MAX_LINE_CHARS = 65_536;

/** A line that is too long becomes one that says so and holds its beginning, cut where no secret is parted from its mark. */
function scrub(line: string): string {
  if (line.length <= MAX_LINE_CHARS) return redact(line);
  const head = /^\{"level":"[a-z]{1,9}","time":"[^"]{1,40}",/.exec(line)?.[0] ?? '{';
  const start = line.slice(0, MAX_LINE_CHARS / 2);
  const whole = start.slice(0, Math.max(start.lastIndexOf(' '), start.lastIndexOf('"')) + 1);
  return `${head}"msg":"a line of ${line.length} characters was cut","start":${JSON.stringify(redact(whole))}}\n`;
}

function redact(text: string): string {
  return SECRET_PATTERNS.reduce((rest, pattern) => rest.replace(pattern, `$1${REDACTED}`), text);
}
