import { createHash } from 'node:crypto';
import { formatApiKey } from '../../domain/api-key.ts';
import { AppError, type FieldProblem } from '../../domain/errors.ts';
import { encodeId, uuidV7 } from '../../domain/ids.ts';
import type { Network } from '../../domain/network.ts';
import { SCOPES, type Scope, scopesOf } from '../../domain/scope.ts';
import { toIso, type UnixMs, unixMs } from '../../domain/time.ts';
import { warnUnwatched } from '../../payments/watched-networks.ts';
import { insertApiKey } from '../../store/access/api-keys.ts';
import type { Database } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { refuseBeyond } from '../authorize.ts';
import { parseCidr } from '../input/cidr.ts';
import { clip } from '../input/clip.ts';
import { parseMoment } from '../input/duration.ts';
import { fieldProblem } from '../input/field-error.ts';
import { nameProblem } from '../input/name-problem.ts';
import { selectProject } from '../projects/select-project.ts';
import { recordActions } from '../record-actions.ts';
import type { CreatedKeyView } from './views.ts';

export type NewKey = {
  name: string;
  expiresAt: UnixMs | null;
  allowedCidrs: string[] | null;
  scopes?: readonly Scope[] | null;
};

/**
 * Reads what a key is to be, with all problems at once. `expires`: a duration (`90d`) or a date; `allowedIps`: addresses or CIDR blocks;
 * `scopes`: what it may do, else what keys could always do. Errors: `INVALID_ARGUMENT`.
 */
export function readNewKey(
  input: {
    name: string;
    expires?: string | undefined;
    allowedIps?: readonly string[] | undefined;
    scopes?: readonly string[] | undefined;
  },
  now: UnixMs,
): NewKey {
  const problems: FieldProblem[] = [];
  const add = (field: string, reason: string | null) => {
    if (reason !== null) problems.push(fieldProblem(field, reason));
  };
  const name = input.name.trim();
  add('name', nameProblem(name));
  const expiresMs = input.expires === undefined ? null : parseMoment(input.expires, now);
  if (input.expires !== undefined) {
    const shown = clip(input.expires);
    if (expiresMs === null) add('expires', `is ${shown}: write a duration (12h, 90d) or a date (2027-01-31, UTC)`);
    else if (expiresMs <= now) add('expires', `is ${shown}, which is past: give a moment in the future`);
  }
  const allowedCidrs = (input.allowedIps ?? []).flatMap((text) => {
    const parsed = parseCidr(text.trim());
    if (parsed.kind === 'ok') return [parsed.cidr];
    add('allowedIps', parsed.reason);
    return [];
  });
  const named = input.scopes?.map((text) => text.trim()) ?? [];
  const unknown = named.find((name) => !SCOPES.some((scope) => scope === name));
  const choice = `choose some of ${SCOPES.join(', ')}`;
  if (unknown !== undefined) add('scopes', `has ${clip(unknown)}, which is no scope: ${choice}`);
  else if (input.scopes?.length === 0) add('scopes', `is empty: ${choice}`);
  if (problems.length > 0) throw new AppError('INVALID_ARGUMENT', 'the key was not made', { problems });
  return {
    name,
    expiresAt: expiresMs === null ? null : unixMs(expiresMs),
    allowedCidrs: allowedCidrs.length === 0 ? null : allowedCidrs,
    scopes: input.scopes === undefined ? null : scopesOf(named),
  };
}

/** `networks`: those whose nodes are known here. */
type Deps = { db: Database; networks: readonly Network[]; now(): UnixMs; random(bytes: number): Uint8Array };

/** Makes a secret key and shows it this one time; the database keeps its SHA-256. Errors: `NOT_FOUND`, `INVALID_ARGUMENT` (which project). */
export async function createKey(
  { db, networks, now, random }: Deps,
  actor: Actor,
  { projectId, ...key }: NewKey & { projectId: string | undefined },
): Promise<CreatedKeyView> {
  const project = await selectProject(db, actor, projectId);
  refuseBeyond(actor, key);
  const id = uuidV7(now(), random(10));
  const apiKey = formatApiKey(project.network, id, random(32));
  const secretSha256 = createHash('sha256').update(apiKey).digest();
  const expiresAt = key.expiresAt && toIso(key.expiresAt);
  const scopes = [...scopesOf(key.scopes ?? null)];
  await db.transaction(async (tx) => {
    await insertApiKey(tx, { id, projectId: project.id, secretSha256, ...key });
    const detail = { name: key.name, expiresAt, allowedIps: key.allowedCidrs, scopes };
    await recordActions(tx, actor, now(), [
      { projectId: project.id, action: 'key.created', subject: encodeId('key', id), detail },
    ]);
  });
  const warning = await warnUnwatched(db, project.network, networks);
  return {
    ...{ keyId: encodeId('key', id), projectId: encodeId('prj', project.id), network: project.network },
    ...{ name: key.name, apiKey },
    expiresAt,
    allowedIps: key.allowedCidrs,
    scopes,
    ...(warning !== null && { warning }),
  };
}
