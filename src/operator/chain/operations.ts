import { writeCheckpoint } from '../../chain/proof/checkpoints.ts';
import { ALARM_KINDS, ALARMS, type AlarmKind } from '../../domain/alarm-kinds.ts';
import { AppError } from '../../domain/errors.ts';
import { say } from '../../domain/message.ts';
import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import { Type } from '../../runtime/type.ts';
import { findAlarmSubjects, resolveAlarms } from '../../store/chain/alarms.ts';
import { findHalt } from '../../store/chain/cursor.ts';
import { findProducerSets } from '../../store/chain/producer-sets.ts';
import type { Database, Sql } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { clip } from '../input/clip.ts';
import { Flag, Line, NetworkName } from '../input/given.ts';
import { readOneNote } from '../input/read-note.ts';
import { operation } from '../operation.ts';
import { recordActions } from '../record-actions.ts';
import { followedCursor } from './followed-cursor.ts';
import { listProducers } from './list-producers.ts';
import { resumeChain } from './resume-chain.ts';
import { selectNetwork } from './select-network.ts';
import { showStatus } from './show-status.ts';
import { AcknowledgedView, ChainStatusView, CheckpointView, ProducersView, ResumedView } from './views.ts';

const Input = Type.Object({ network: NetworkName });

export const showStatusOperation = operation({
  action: 'showStatus',
  summary: 'Where the service stands with a network, how its nodes are, and which alarms are open',
  ...{ method: 'GET', path: '/chain/:network', input: Input, output: ChainStatusView },
  read: ({ network }) => ({ network }),
  run: (deps, actor, { network }) => showStatus(deps, actor, { network: selectNetwork(deps.networks, network) }),
});

export const listProducersOperation = operation({
  action: 'listProducers',
  summary: 'Who may make blocks: every change, when, why, and which nodes said so',
  ...{ method: 'GET', path: '/chain/:network/producers', input: Input, output: ProducersView },
  read: ({ network }) => ({ network }),
  run: (deps, actor, { network }) => listProducers(deps, actor, { network: selectNetwork(deps.networks, network) }),
});

export const makeCheckpointOperation = operation({
  action: 'makeCheckpoint',
  summary: 'Where the ledger stands, with its producers, as a release ships it for first starts',
  ...{ method: 'GET', path: '/chain/:network/checkpoint', input: Input, output: CheckpointView },
  read: ({ network }) => ({ network }),
  run: (deps, actor, { network }) => makeCheckpoint(deps, actor, { network: selectNetwork(deps.networks, network) }),
});

export const acknowledgeAlarmsOperation = operation({
  action: 'acknowledgeAlarms',
  summary: 'Close alarms that tell of something that happened once',
  ...{ method: 'POST', path: '/chain/:network/acknowledge', output: AcknowledgedView },
  input: Type.Object({ network: NetworkName, alarm: Type.String(), subject: Line }),
  read: ({ network, alarm, subject = null }) => ({ network, kind: readAlarmKind(alarm), subject }),
  run: (deps, actor, { network, ...alarm }) =>
    acknowledgeAlarms(deps, actor, { network: selectNetwork(deps.networks, network), ...alarm }),
});

export const resumeChainOperation = operation({
  action: 'resumeChain',
  summary:
    'Let a watcher go on that stopped because the chain contradicted the ledger; without isSettled only show why',
  ...{ method: 'POST', path: '/chain/:network/resume', output: ResumedView },
  input: Type.Object({
    ...{ network: NetworkName, isSettled: Flag },
    haltedAt: Type.Optional(
      Type.String({ description: 'When the halt was that you saw; refused if it is another now' }),
    ),
    reason: Type.Optional(Type.String({ description: 'Why it may go on, for the record' })),
  }),
  read: ({ network, isSettled = false, haltedAt = null, reason }) => ({
    ...{ network, isSettled, haltedAt },
    why: reason === undefined ? null : readOneNote(reason, 'reason'),
  }),
  run: (deps, actor, { network, ...decision }) =>
    resumeChain(deps, actor, { network: selectNetwork(deps.networks, network), ...decision }),
});

/** Where the ledger stands, with the producers in force. Errors: `CONFLICT` while it is halted, `NOT_FOUND`. */
async function makeCheckpoint(
  { db }: { db: Sql },
  _actor: Actor,
  { network }: { network: Network },
): Promise<CheckpointView> {
  const { solid } = await followedCursor(db, network);
  const halt = await findHalt(db, network);
  if (halt !== null) throw new AppError('CONFLICT', `${network} is halted, and where it stands is in doubt`);
  const [set] = await findProducerSets(db, network, 1);
  if (set === undefined || solid.number === 0) {
    throw new AppError('NOT_FOUND', `${network} was not followed for long enough: let the service run for a while`);
  }
  const { producers, ...block } = writeCheckpoint({ network, ...solid, producers: set.producers });
  return { ...block, producers: [...producers] };
}

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

export const operations = [
  showStatusOperation,
  listProducersOperation,
  makeCheckpointOperation,
  acknowledgeAlarmsOperation,
  resumeChainOperation,
];
