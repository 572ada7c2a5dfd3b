import { Type } from '../../runtime/type.ts';
import { Flag, Line, NetworkName } from '../input/given.ts';
import { readOneNote } from '../input/read-note.ts';
import { operation } from '../operation.ts';
import { acknowledgeAlarms, readAlarmKind } from './acknowledge-alarms.ts';
import { listProducers } from './list-producers.ts';
import { makeCheckpoint } from './make-checkpoint.ts';
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
