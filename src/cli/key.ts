import { createHash, randomBytes } from 'node:crypto';
import { parseCidr } from '../config/cidr.ts';
import { formatApiKey, readApiKey } from '../domain/api-key.ts';
import { decodeId, encodeId, uuidV7 } from '../domain/ids.ts';
import { toIso, type UnixMs, unixMs } from '../domain/time.ts';
import { systemClock } from '../runtime/clock.ts';
import { insertApiKey, type ListedApiKey, listApiKeys, revokeApiKey } from '../store/api-keys.ts';
import { CliError, type Problem } from './cli-error.ts';
import { clip } from './clip.ts';
import { parseMoment } from './duration.ts';
import { nameProblem } from './name-problem.ts';
import { selectProject } from './select-project.ts';
import { formatFields, formatTable, type Result, type Terminal } from './terminal.ts';
import { withDatabase } from './with-database.ts';

export type CreateKeyOptions = { project?: string; name: string; expires?: string; allowIp?: string[] };

/** Makes a secret key and shows it this one time; the database keeps its SHA-256. */
export async function createKey(terminal: Terminal, options: CreateKeyOptions): Promise<Result> {
  const nowMs = systemClock.now();
  const { name, expiresAt, allowedCidrs } = readOptions(options, nowMs);
  const id = uuidV7(nowMs, randomBytes(10));
  return withDatabase(terminal, async ({ db }) => {
    const project = await selectProject(db, options.project);
    const apiKey = formatApiKey(project.network, id, randomBytes(32));
    const secretSha256 = createHash('sha256').update(apiKey).digest();
    await insertApiKey(db, { id, projectId: project.id, name, secretSha256, allowedCidrs, expiresAt });
    const [keyId, projectId] = [encodeId('key', id), encodeId('prj', project.id)];
    const expires = expiresAt === null ? null : toIso(expiresAt);
    return {
      data: { keyId, projectId, network: project.network, name, apiKey, expiresAt: expires, allowedIps: allowedCidrs },
      text: formatFields([
        ['key', keyId],
        ['project', projectId],
        ['network', project.network],
        ['name', name],
        ['expires', expires ?? 'never'],
        ['allowed IPs', allowedCidrs?.join(', ') ?? 'all'],
        ['secret key', apiKey],
      ]),
      next: 'the secret key is shown only now: store it where your server reads it (header X-Api-Key)',
    };
  });
}

export async function listKeys(terminal: Terminal, options: { project?: string }): Promise<Result> {
  return withDatabase(terminal, async ({ db }) => {
    const project = await selectProject(db, options.project);
    const keys = (await listApiKeys(db, project.id)).map((key) => describe(key, systemClock.now()));
    const rows = keys.map((key) => [
      key.keyId,
      key.status,
      key.createdAt,
      key.lastUsedAt ?? 'never',
      key.expiresAt ?? 'never',
      key.allowedIps?.join(',') ?? 'all',
      key.name,
    ]);
    return {
      data: { data: keys },
      text: formatTable(['KEY', 'STATUS', 'CREATED', 'LAST USED', 'EXPIRES', 'ALLOWED IPS', 'NAME'], rows),
      ...(keys.length === 0 ? { next: 'no key yet: make one with "quittance key create"' } : {}),
    };
  });
}

export async function revokeKey(terminal: Terminal, keyId: string): Promise<Result> {
  const uuid = readKeyId(keyId);
  const isKnown = await withDatabase(terminal, ({ db }) => revokeApiKey(db, uuid, unixMs(systemClock.now())));
  if (!isKnown) throw new CliError('NOT_FOUND', `there is no key ${keyId}: "quittance key list" shows those there are`);
  return { data: { keyId, status: 'revoked' }, text: `revoked ${keyId}` };
}

/** A secret key holds its id; it is named, the secret is not repeated. */
function readKeyId(keyId: string): string {
  const uuid = decodeId('key', keyId);
  if (uuid !== null) return uuid;
  const secret = readApiKey(keyId);
  if (secret !== null) {
    throw new CliError(
      'INVALID_ARGUMENT',
      `this is a secret key, not its id: run "quittance key revoke ${encodeId('key', secret.keyUuid)}"`,
    );
  }
  const shown = keyId.startsWith('qt_') ? 'this' : clip(keyId);
  throw new CliError(
    'INVALID_ARGUMENT',
    `${shown} is not a key id: it is "key_" and 26 characters, as "quittance key list" shows it`,
  );
}

function describe(key: ListedApiKey, nowMs: number) {
  return {
    keyId: encodeId('key', key.id),
    name: key.name,
    status: statusOf(key, nowMs),
    createdAt: toIso(key.created_at),
    expiresAt: isoOrNull(key.expires_at),
    revokedAt: isoOrNull(key.revoked_at),
    lastUsedAt: isoOrNull(key.last_used_at),
    allowedIps: key.allowed_cidrs,
  };
}

function statusOf(key: ListedApiKey, nowMs: number): 'active' | 'expired' | 'revoked' {
  if (key.revoked_at !== null) return 'revoked';
  return key.expires_at !== null && key.expires_at <= nowMs ? 'expired' : 'active';
}

function isoOrNull(time: UnixMs | null): string | null {
  return time === null ? null : toIso(time);
}

/** All problems at once. */
function readOptions(options: CreateKeyOptions, nowMs: number) {
  const problems: Problem[] = [];
  const add = (subject: string, message: string) => problems.push({ subject, message: `${subject} ${message}` });
  const name = options.name.trim();
  const nameIsWrong = nameProblem(name);
  if (nameIsWrong !== null) add('--name', nameIsWrong);
  const expiresMs = options.expires === undefined ? null : parseMoment(options.expires, nowMs);
  if (options.expires !== undefined) {
    const shown = clip(options.expires);
    if (expiresMs === null) add('--expires', `is ${shown}: write a duration (12h, 90d) or a date (2027-01-31, UTC)`);
    else if (expiresMs <= nowMs) add('--expires', `is ${shown}, which is past: give a moment in the future`);
  }
  const allowedCidrs = (options.allowIp ?? []).flatMap((text) => {
    const parsed = parseCidr(text.trim());
    if (parsed.kind === 'ok') return [parsed.cidr];
    add('--allow-ip', parsed.reason);
    return [];
  });
  if (problems.length > 0) throw new CliError('INVALID_ARGUMENT', 'the key was not made', { problems });
  return {
    name,
    expiresAt: expiresMs === null ? null : unixMs(expiresMs),
    allowedCidrs: allowedCidrs.length === 0 ? null : allowedCidrs,
  };
}
