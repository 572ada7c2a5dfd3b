import { createHash } from 'node:crypto';
import { formatAdminKey } from '../../domain/api-key.ts';
import { AppError, type FieldProblem } from '../../domain/errors.ts';
import { encodeId, uuidV7 } from '../../domain/ids.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import { insertAdminKey } from '../../store/access/admin-keys.ts';
import type { Database } from '../../store/db/database.ts';
import { type Actor, ROLES, type Role } from '../actor.ts';
import { refuseBeyond } from '../authorize.ts';
import { gatherProblems } from '../input/gather-problems.ts';
import { readChoice } from '../input/read-choice.ts';
import { type NewKey, readNewKey } from '../keys/create-key.ts';
import { selectProject } from '../projects/select-project.ts';
import { recordActions } from '../record-actions.ts';
import type { CreatedAdminKeyView } from './views.ts';

/** The bound of the schema. */
const MAX_PROJECTS = 100;

type Asked = Parameters<typeof readNewKey>[0] & { role: string; projects: readonly string[] | undefined };
/** `projects`: `prj_…`, or `null` for all. */
type NewAdminKey = NewKey & { role: Role; projects: readonly string[] | null };

/** Reads what a key is to be, with all problems at once. Errors: `INVALID_ARGUMENT`. */
export function readNewAdminKey({ role: name, projects, ...asked }: Asked, now: UnixMs): NewAdminKey {
  const problems: FieldProblem[] = [];
  const role = gatherProblems(problems, () => readChoice('role', name, ROLES));
  const key = gatherProblems(problems, () => readNewKey(asked, now));
  const wanted = [...new Set(projects ?? [])];
  if (wanted.length > MAX_PROJECTS) {
    problems.push({ subject: 'projects', message: `a key takes at most ${MAX_PROJECTS} projects, or all` });
  }
  if (problems.length === 0 && role && key) return { ...key, role, projects: wanted.length === 0 ? null : wanted };
  throw new AppError('INVALID_ARGUMENT', 'the key was not made', { problems });
}

type Deps = { db: Database; now(): UnixMs; random(bytes: number): Uint8Array };

/** Makes a key of the admin API and shows it this one time; the database keeps its SHA-256. Errors: `NOT_FOUND`, `INVALID_ARGUMENT`, also for more access than the actor has. */
export async function createAdminKey(
  { db, now, random }: Deps,
  actor: Actor,
  { name, role, allowedCidrs, expiresAt, ...wanted }: NewAdminKey,
): Promise<CreatedAdminKeyView> {
  const projects: string[] = [];
  for (const projectId of wanted.projects ?? []) projects.push((await selectProject(db, actor, projectId)).id);
  refuseBeyond(actor, { role, projects: wanted.projects === null ? null : projects, expiresAt, allowedCidrs });
  const id = uuidV7(now(), random(10));
  const adminKey = formatAdminKey(id, random(32));
  const secretSha256 = createHash('sha256').update(adminKey).digest();
  const adminKeyId = encodeId('adm', id);
  const shown = {
    ...{ name, role, projects: wanted.projects === null ? null : [...wanted.projects] },
    ...{ expiresAt: expiresAt && toIso(expiresAt), allowedIps: allowedCidrs },
  };
  await db.transaction(async (tx) => {
    const kept = { id, name, role, allowedCidrs, expiresAt, secretSha256 };
    await insertAdminKey(tx, { ...kept, projects: wanted.projects === null ? null : projects });
    await recordActions(tx, actor, now(), [
      { projectId: null, action: 'admin-key.created', subject: adminKeyId, detail: shown },
    ]);
  });
  return { adminKeyId, ...shown, adminKey };
}
