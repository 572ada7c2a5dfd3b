import { encodeId } from '../../domain/ids.ts';
import type { Hint } from '../../domain/message.ts';
import { toIso } from '../../domain/time.ts';
import type { Sql } from '../../store/db/database.ts';
import { countAddresses, listAddresses as list, MAX_LISTED } from '../../store/ledger/addresses.ts';
import type { Actor } from '../actor.ts';
import { clip } from '../input/clip.ts';
import { FieldError } from '../input/field-error.ts';
import { selectProject } from '../select-project.ts';
import { countActive } from '../subjects/projects.ts';
import { type AddressListView, lifeStatusOf } from './views.ts';

/** The position behind which a list begins. Errors: `INVALID_ARGUMENT`. */
export function readPosition(text: string | undefined): number {
  if (text === undefined) return 0;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new FieldError('after', `is ${clip(text)}: give the position of an address, a whole number`);
}

/** The project's addresses by position, 10,000 at most. `next`: adds the first, or shows the rest. */
export async function listAddresses(
  { db }: { db: Sql },
  actor: Actor,
  input: { projectId: string | undefined; after: number },
): Promise<{ view: AddressListView; next: Hint | null }> {
  const { id, policy } = await selectProject(db, actor, input.projectId);
  const rows = await list(db, id, input.after);
  const { active, retired } = await countAddresses(db, id);
  const projectId = encodeId('prj', id);
  const data = rows.map((row) => ({
    ...{ address: row.address, policy: row.policy, position: row.position },
    status: lifeStatusOf(row),
    derivationIndex: row.derivationIndex,
    createdAt: toIso(row.createdAt),
    retiredAt: row.retiredAt && toIso(row.retiredAt),
  }));
  const view = { projectId, policy, activeAddresses: active, data };
  if (countActive(active) + retired === 0) return { view, next: { command: 'address add', args: ['T…'] } };
  if (rows.length < MAX_LISTED) return { view, next: null };
  const after = String(rows.at(-1)?.position);
  return { view, next: { command: 'address list', input: { projectId, after } } };
}
