import { EVENT_TYPES, type EventType } from '../../domain/event.ts';
import { decodeId } from '../../domain/ids.ts';
import type { Sql } from '../../store/database.ts';
import { findWebhookEndpoint, type WebhookEndpoint } from '../../store/webhook-endpoints.ts';
import { parseSecret } from '../../webhooks/sign.ts';
import { CliError } from '../cli-error.ts';
import { clip } from '../clip.ts';
import { parseDuration } from '../duration.ts';
import { secretProblem } from '../secret-problem.ts';
import { spotSecretInNote } from '../spot-secret.ts';

/** The UUID behind a `whe_…`. Errors: `INVALID_ARGUMENT`. */
export function readEndpointId(text: string): string {
  const id = decodeId('whe', text);
  if (id !== null) return id;
  throw new CliError(
    'INVALID_ARGUMENT',
    `${clip(text)} is not an endpoint id: it is "whe_" and 26 characters, as "quittance webhook list" shows it`,
  );
}

/** The endpoint with this `whe_…`. Errors: `INVALID_ARGUMENT`, `NOT_FOUND`. */
export async function findEndpoint(db: Sql, text: string): Promise<WebhookEndpoint> {
  const endpoint = await findWebhookEndpoint(db, readEndpointId(text));
  if (endpoint !== null) return endpoint;
  throw noEndpoint(text);
}

export function noEndpoint(text: string): CliError {
  return new CliError('NOT_FOUND', `there is no endpoint ${text}: "quittance webhook list" shows those there are`);
}

/** The types that `--events` or `--type` names; `null` stands for all. Errors: `INVALID_ARGUMENT`. */
export function readEventTypes(option: string, texts: readonly string[]): EventType[] | null {
  const names = texts.map((text) => text.trim()).filter((text) => text !== '');
  if (names.length === 1 && names[0] === 'all') return null;
  const types = EVENT_TYPES.filter((type) => names.includes(type));
  const unknown = names.find((name) => !types.some((type) => type === name));
  if (unknown === undefined && types.length > 0) return types;
  const what = unknown === undefined ? 'is empty' : `has ${clip(unknown)}, which is no type of event`;
  throw new CliError('INVALID_ARGUMENT', `${option} ${what}: choose all, or some of ${EVENT_TYPES.join(', ')}`);
}

/** The bound of the schema. */
const MAX_DESCRIPTION = 200;

/** A description of up to 200 characters on one line; may be empty. Errors: `INVALID_ARGUMENT`. */
export function readDescription(text: string): string {
  return readLine('--description', text);
}

/** One line of free text, which is kept and shown: what looks like a secret is refused. Errors: `INVALID_ARGUMENT`. */
export function readLine(option: string, text: string): string {
  const line = text.trim();
  const kind = spotSecretInNote(line);
  if (kind !== null) throw new CliError('INVALID_ARGUMENT', secretProblem(option, kind).message);
  const length = [...line].length;
  if (length <= MAX_DESCRIPTION && !/[\p{Cc}\p{Cs}]/u.test(line)) return line;
  const problem = length > MAX_DESCRIPTION ? `has ${length} characters` : 'holds a line break or a control character';
  throw new CliError(
    'INVALID_ARGUMENT',
    `${option} ${problem}: give at most ${MAX_DESCRIPTION} characters on one line`,
  );
}

/** Many times what the longest secret takes. */
const MAX_SECRET_INPUT = 1024;

/** The secret that was given, `-` reads it from standard input. Errors: `INVALID_ARGUMENT`, without the secret. */
export async function readSecret(option: string, stdin: NodeJS.ReadableStream): Promise<string> {
  const text = (option === '-' ? await readInput(stdin) : option).trim();
  try {
    parseSecret(text);
    return text;
  } catch {
    throw new CliError(
      'INVALID_ARGUMENT',
      `--secret (${text.length} characters, not shown) is not "whsec_" and the base64 of 24 to 64 bytes: leave it out for a new one, or make one with: echo "whsec_$(openssl rand -base64 32)"`,
    );
  }
}

async function readInput(stdin: NodeJS.ReadableStream): Promise<string> {
  let text = '';
  for await (const chunk of stdin) {
    text += String(chunk);
    if (text.length > MAX_SECRET_INPUT) {
      throw new CliError('INVALID_ARGUMENT', 'standard input holds more than one secret: give one, on one line');
    }
  }
  return text;
}

/** A secret for --json and for people: only one that we made, for whoever gave one has it. `option` is what was given. */
export function showSecret(secret: string, option: string | undefined): { data: string | null; text: string } {
  return option === undefined ? { data: secret, text: secret } : { data: null, text: 'the given one, not shown' };
}

/** What to know of the secret: one that we made is not shown again, and what is typed stands in the history of the shell. */
export function secretHint(option: string | undefined, made: string): string[] {
  if (option === undefined) return [made];
  if (option === '-') return [];
  return ['the secret that you typed may now stand in your shell history; --secret - reads it from standard input'];
}

const MAX_OVERLAP_MS = 30 * 86_400_000;

/** How long former secrets go on signing, 0 to 30 days. Errors: `INVALID_ARGUMENT`. */
export function readOverlap(text: string): number {
  const overlapMs = /^0[mhd]?$/.test(text) ? 0 : parseDuration(text);
  if (overlapMs !== null && overlapMs <= MAX_OVERLAP_MS) return overlapMs;
  throw new CliError('INVALID_ARGUMENT', `--overlap is ${clip(text)}: give 0, or a duration of up to 30d such as 24h`);
}
