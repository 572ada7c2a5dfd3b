import type { UnixMs } from '../../core/domain/time.ts';
import { insertOperatorActions, type OperatorAction, type RecordedActor } from '../../core/store/access/audit-log.ts';
import type { Sql } from '../../core/store/db/database.ts';
import type { Actor } from './actor.ts';

type Done = Pick<OperatorAction, 'projectId' | 'action' | 'subject' | 'detail'>;

/**
 * Records actions in the transaction that performs them. Call it last, because it blocks all other writes to the audit log until the
 * transaction ends.
 */
export function recordActions(tx: Sql, actor: Actor, actedAt: UnixMs, actions: readonly Done[]): Promise<void> {
  const by = recordedActor(actor);
  return insertOperatorActions(
    tx,
    actions.map((action) => ({ ...action, ...by, actedAt })),
  );
}

/** Records one action, as `recordActions` does. An action without a `projectId` doesn't belong to a single project. */
export function recordAction(
  tx: Sql,
  actor: Actor,
  actedAt: UnixMs,
  action: Done['action'],
  about: Omit<Done, 'action' | 'projectId'> & { projectId?: string },
): Promise<void> {
  return recordActions(tx, actor, actedAt, [{ projectId: null, action, ...about }]);
}

/** Converts an actor for the audit log. */
export function recordedActor({ kind, id, name, origin, requestId }: Actor): RecordedActor {
  return { actorKind: kind, actorId: id, actedBy: name, origin, requestId };
}
