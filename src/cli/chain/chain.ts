import { AppError } from '../../domain/errors.ts';
import { acceptProducers } from '../../operator/chain/accept-producers.ts';
import {
  acknowledgeAlarmsOperation,
  listProducersOperation,
  resumeChainOperation,
  showStatusOperation,
} from '../../operator/chain/operations.ts';
import { sayWatcher } from '../../operator/chain/status-words.ts';
import type { ChainStatusView } from '../../operator/chain/views.ts';
import { formatFields } from '../../operator/command-text.ts';
import { cliActor } from '../terminal/operator.ts';
import { runOperation } from '../terminal/run-operation.ts';
import { type Column, tableOf } from '../terminal/table.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';
import { withNodes } from '../terminal/with-nodes.ts';

type NetworkOption = { network?: string };

export async function printStatus(terminal: Terminal, options: NetworkOption): Promise<Result> {
  const { view, state } = await runOperation(terminal, showStatusOperation, options);
  const { network, halt, recorded, examined, behind, watcher, alarms } = view;
  const fields = formatFields([
    ['network', network],
    ['halted', halt && `since ${halt.at}: ${halt.reason}`],
    ['recorded', recorded === null ? 'nothing yet' : `block ${recorded.number} of ${recorded.time}`],
    ['examined', examined && `block ${examined.number} of ${examined.time}`],
    ['watcher', sayWatcher(state)],
    ...describeWatcher(view),
    ...behind.why.map(({ text }, index) => [index === 0 ? 'why' : '', text] as const),
  ]);
  const parts = [fields, tableOf(NODES, watcher?.nodes ?? []), tableOf(ALARMS, alarms)];
  return {
    data: view,
    text: parts.filter((part) => part !== '').join('\n\n'),
    ...(halt === null
      ? {}
      : { next: `nothing becomes PAID until you decide: "quittance chain resume --network ${network}"` }),
  };
}

function describeWatcher({ watcher, behind }: ChainStatusView): (readonly [string, string | null])[] {
  if (watcher === null) return [];
  const { blind, headNumber, ownSolidNumber, nodeSolidNumber, requestsPerBlock } = watcher;
  return [
    ['blind', blind],
    ['head', `block ${headNumber}`],
    ['irreversible', `block ${ownSolidNumber} by our own verification, ${nodeSolidNumber} by the node`],
    ['behind', `${behind.blocks} irreversible blocks`],
    ['requests', requestsPerBlock === null ? null : `${requestsPerBlock.toFixed(2)} a block`],
  ];
}

const NODES: readonly Column<NonNullable<ChainStatusView['watcher']>['nodes'][number]>[] = [
  ['NODE', ({ url }) => url],
  ['OPERATOR', ({ operator }) => operator],
  ['STATE', ({ state, pausedForMs }) => (pausedForMs > 0 ? `${state}, ${Math.ceil(pausedForMs / 1000)} s` : state)],
  ['REQUESTS', ({ requests }) => String(requests)],
  ['REFUSED', ({ refusals }) => String(refusals)],
  [
    'TODAY',
    ({ requestsToday, requestsPerDay = null }) =>
      `${requestsToday}${requestsPerDay === null ? '' : ` of ${requestsPerDay}`}`,
  ],
  ['ANSWER', ({ answerMs }) => (answerMs === null ? '' : `${Math.round(answerMs)} ms`)],
  ['WHY', ({ reason }) => reason ?? ''],
];

const ALARMS: readonly Column<ChainStatusView['alarms'][number]>[] = [
  ['ALARM', ({ kind }) => kind],
  ['SINCE', ({ raisedAt }) => raisedAt],
  ['SEEN', ({ seenCount }) => String(seenCount)],
  ['WHAT', ({ detail }) => detail],
];

export async function printResumed(
  terminal: Terminal,
  { network: name, yes = false, reason: why }: NetworkOption & { yes?: boolean; reason?: string },
): Promise<Result> {
  const view = await runOperation(terminal, resumeChainOperation, {
    ...{ network: name, isSettled: yes },
    ...(why === undefined ? {} : { reason: why }),
  });
  const { network, resumed, halt } = view;
  const reason = `${network} is halted since ${halt.at}: ${halt.reason}`;
  if (!resumed) {
    throw new AppError('USAGE', `${reason}. When you know why and it is settled, run the command again with --yes`);
  }
  return {
    data: view,
    text: `${reason}\n${network} is resumed: the watcher goes on from where the ledger stands`,
    next: 'see whether it holds with "quittance chain status"',
  };
}

export async function printAcknowledged(
  terminal: Terminal,
  options: NetworkOption & { alarm: string; subject?: string },
): Promise<Result> {
  const data = await runOperation(terminal, acknowledgeAlarmsOperation, options);
  const { kind } = data;
  return { data, text: `closed ${data.closed} ${data.closed === 1 ? 'alarm' : 'alarms'} ${kind} of ${data.network}` };
}

export async function printProducers(terminal: Terminal, options: NetworkOption): Promise<Result> {
  const data = await runOperation(terminal, listProducersOperation, options);
  const text = data.data.map(({ adoptedAt, reason, nodes, producers }) => {
    return `adopted at ${adoptedAt}: ${reason}, by ${nodes.join(', ')}\n${tableOf(PRODUCERS, producers)}`;
  });
  return {
    data,
    text: text.join('\n\n'),
    ...(text.length === 0
      ? { next: 'no producers yet: the service learns them when it first follows the network' }
      : {}),
  };
}

const PRODUCERS: readonly Column<{ address: string; signer: string }>[] = [
  ['PRODUCER', ({ address }) => address],
  ['KEY', ({ address, signer }) => (signer === address ? '' : `signs with ${signer}`)],
];

export async function printAcceptedProducers(
  terminal: Terminal,
  { network, yes }: NetworkOption & { yes?: boolean },
): Promise<Result> {
  const data = await withNodes(terminal, network, async (deps) => {
    if (yes === true) return acceptProducers(deps, cliActor(terminal));
    throw new AppError(
      'USAGE',
      'this lets the nodes say who makes blocks, whatever was known before. When you know that the network changed so much, run the command again with --yes',
    );
  });
  return {
    data,
    text: `took over the ${data.producers} producers that ${data.nodes.join(' and ')} name`,
    next: 'see whether the watcher goes on with "quittance chain status"',
  };
}
