import { ALARM_KINDS, ALARMS, type AlarmKind } from '../../domain/alarm-kinds.ts';
import { AppError } from '../../domain/errors.ts';
import { say } from '../../domain/message.ts';
import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import { findAlarmSubjects, resolveAlarms } from '../../store/chain/alarms.ts';
import type { Database } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { clip } from '../input/clip.ts';
import { recordActions } from '../record-actions.ts';
import type { AcknowledgedView } from './views.ts';

const closedByOperators = ALARM_KINDS.filter((kind) => ALARMS[kind].endsBy === 'operator');

/** A kind of alarm that an operator closes. Errors: `INVALID_ARGUMENT`. */
export function readAlarmKind(text: string): AlarmKind {
  const kind = ALARM_KINDS.find((known) => known === text);
  if (kind !== undefined && closedByOperators.includes(kind)) return kind;
  const choices = closedByOperators.join(', ');
  throw new AppError(
    'INVALID_ARGUMENT',
    kind === undefined
      ? say`${{ field: 'alarm' }} ${clip(text)} is no kind of alarm: it takes ${choices}`
      : say`the alarm ${kind} ends by itself when its cause does: ${{ field: 'alarm' }} takes ${choices}`,
  );
}

/** Closes the alarms of a kind, or the one about a subject, that an operator has read and that nothing else would ever close. Errors: `NOT_FOUND`. */
export async function acknowledgeAlarms(
  { db, now }: { db: Database; now(): UnixMs },
  actor: Actor,
  { network, kind, subject }: { network: Network; kind: AlarmKind; subject: string | null },
): Promise<AcknowledgedView> {
  const closed = await db.transaction(async (tx) => {
    const open = kind === 'audit-broken' ? await findAlarmSubjects(tx, network, kind) : null;
    const count = await resolveAlarms(tx, network, kind, subject);
    // What of the log itself was looked at stands in the log, so that it is not told again.
    const accepted = open?.filter((each) => subject === null || each === subject);
    const detail = { kind, subject, closed: count, ...(accepted === undefined ? {} : { accepted }) };
    if (count > 0) {
      await recordActions(tx, actor, now(), [
        { projectId: null, action: 'alarm.acknowledged', subject: network, detail },
      ]);
    }
    return count;
  });
  if (closed > 0) return { network, kind, subject, closed };
  const about = subject === null ? '' : ` about ${clip(subject)}`;
  throw new AppError(
    'NOT_FOUND',
    say`${network} has no open alarm ${kind}${about}: see "${{ command: 'chain status', input: { json: true } }}"`,
  );
}
