import type { UnixMs } from '../domain/time.ts';
import { insertOperatorActions, type OperatorAction, type RecordedActor } from '../store/access/audit-log.ts';
import type { Sql } from '../store/db/database.ts';
import type { Actor } from './actor.ts';

type Done = Pick<OperatorAction, 'projectId' | 'action' | 'subject' | 'detail'>;

/** Records what an actor does, in the transaction that does it, and last in it: until it ends nobody else records anything. */
export function recordActions(tx: Sql, actor: Actor, actedAt: UnixMs, actions: readonly Done[]): Promise<void> {
  const by = recordedActor(actor);
  return insertOperatorActions(
    tx,
    actions.map((action) => ({ ...action, ...by, actedAt })),
  );
}

/** An actor as the audit log knows it. */
export function recordedActor({ kind, id, name, origin, requestId }: Actor): RecordedActor {
  return { actorKind: kind, actorId: id, actedBy: name, origin, requestId };
}
