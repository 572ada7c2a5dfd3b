import { acceptProducers } from '../chain/producers.ts';
import type { Network } from '../domain/network.ts';
import { nodeOrigin } from '../domain/node.ts';
import { toIso } from '../domain/time.ts';
import { systemClock } from '../runtime/clock.ts';
import { findOpenAlarms, resolveAlarms } from '../store/alarms.ts';
import { clearHalt, findCursor, findHalt } from '../store/chain-cursor.ts';
import { type ChainStatus, findChainStatus, STATUS_SILENT_MS } from '../store/chain-status.ts';
import type { Sql } from '../store/database.ts';
import { isLeaseHeld, watcherLease } from '../store/leases.ts';
import { findProducerSets } from '../store/producer-sets.ts';
import { accountToAddress } from '../tron/address.ts';
import { CliError } from './cli-error.ts';
import { selectNetwork } from './select-network.ts';
import { formatFields, formatTable, type Result, type Terminal } from './terminal.ts';
import { blocksBehind, whyBehind } from './why-behind.ts';
import { withDatabase } from './with-database.ts';
import { withNodes } from './with-nodes.ts';

type NetworkOption = { network?: string };

const MAX_SETS = 100;

/** Shows where the service stands with a network, how its nodes are, and what an operator must know. */
export async function showChainStatus(terminal: Terminal, options: NetworkOption): Promise<Result> {
  return withDatabase(terminal, async ({ db, config }) => {
    const network = selectNetwork(config, options.network);
    const cursor = await findCursor(db, network);
    const found = await findChainStatus(db, network);
    const halt = await findHalt(db, network);
    const alarms = await findOpenAlarms(db, network);
    const isLed = await isLeaseHeld(db, watcherLease(network));
    const ageMs = found === null ? null : systemClock.now() - found.updatedAt;
    const status = found?.status ?? null;
    const why = whyBehind({ status, ageMs, isLed, halt, alarms });
    const data = {
      network,
      behind: { blocks: status && blocksBehind(status), why },
      recorded: cursor && { ...cursor.solid, time: toIso(cursor.solid.time) },
      examined: cursor && { ...cursor.head, time: toIso(cursor.head.time) },
      halt: halt && { at: toIso(halt.at), reason: halt.reason },
      updatedAt: found && toIso(found.updatedAt),
      watcher: found && {
        ...found.status,
        nodes: found.status.nodes.map((node) => ({ ...node, url: originOf(node.url) })),
      },
      alarms: alarms.map(({ id: _, ...alarm }) => ({
        ...alarm,
        raisedAt: toIso(alarm.raisedAt),
        seenAt: toIso(alarm.seenAt),
      })),
    };
    const fields = formatFields([
      ['network', network],
      ['halted', halt && `since ${toIso(halt.at)}: ${halt.reason}`],
      ['recorded', cursor === null ? 'nothing yet' : `block ${cursor.solid.number} of ${toIso(cursor.solid.time)}`],
      ['examined', cursor && `block ${cursor.head.number} of ${toIso(cursor.head.time)}`],
      ['watcher', describeAge(ageMs, isLed)],
      ...describeWatcher(status),
      ...why.map(({ text }, index) => [index === 0 ? 'why' : '', text] as const),
    ]);
    const nodes = formatTable(
      ['NODE', 'OPERATOR', 'STATE', 'REQUESTS', 'REFUSED', 'TODAY', 'ANSWER', 'WHY'],
      nodeRows(found?.status),
    );
    const open = alarms.map((alarm) => [alarm.kind, toIso(alarm.raisedAt), String(alarm.seenCount), alarm.detail]);
    const alarmTable = formatTable(['ALARM', 'SINCE', 'SEEN', 'WHAT'], open);
    return {
      data,
      text: [fields, nodes, alarmTable].filter((part) => part !== '').join('\n\n'),
      ...(halt === null
        ? {}
        : { next: `nothing becomes PAID until you decide: "quittance chain resume --network ${network}"` }),
    };
  });
}

/** Who stops gives the lease back at once; who is killed leaves it for some seconds, and writes no more. */
function describeAge(ageMs: number | null, isLed: boolean): string {
  if (ageMs === null) return 'never ran on this network';
  const seconds = Math.max(0, Math.round(ageMs / 1000));
  return ageMs > STATUS_SILENT_MS || !isLed
    ? `not running: it last wrote ${seconds} s ago`
    : `running, wrote ${seconds} s ago`;
}

function describeWatcher(status: ChainStatus | null): (readonly [string, string | null])[] {
  if (status === null) return [];
  const { requestsPerBlock } = status;
  return [
    ['blind', status.blind],
    ['head', `block ${status.headNumber}`],
    ['irreversible', `block ${status.ownSolidNumber} by our own verification, ${status.nodeSolidNumber} by the node`],
    ['behind', `${blocksBehind(status)} irreversible blocks`],
    ['requests', requestsPerBlock === null ? null : `${requestsPerBlock.toFixed(2)} a block`],
  ];
}

function nodeRows(status: ChainStatus | undefined): string[][] {
  return (status?.nodes ?? []).map((node) => [
    originOf(node.url),
    node.operator,
    node.pausedForMs > 0 ? `${node.state}, ${Math.ceil(node.pausedForMs / 1000)} s` : node.state,
    String(node.requests),
    String(node.refusals),
    String(node.requestsToday),
    node.answerMs === null ? '' : `${Math.round(node.answerMs)} ms`,
    node.reason ?? '',
  ]);
}

/** The path of a node's URL may be a provider's secret. */
function originOf(url: string): string {
  return URL.canParse(url) ? nodeOrigin(url) : '';
}

/** Lets a watcher that stopped for good go on, after its reason was shown. */
export async function resumeChain(terminal: Terminal, options: NetworkOption & { yes?: boolean }): Promise<Result> {
  return withDatabase(terminal, async ({ db, config }) => {
    const network = selectNetwork(config, options.network);
    const halt = await findHalt(db, network);
    if (halt === null) throw new CliError('NOT_FOUND', `${network} is not halted: there is nothing to resume`);
    const reason = `${network} is halted since ${toIso(halt.at)}: ${halt.reason}`;
    if (options.yes !== true) {
      throw new CliError('USAGE', `${reason}. When you know why and it is settled, run the command again with --yes`);
    }
    // Together, so that who looks between sees no alarm without its cause; the watcher, which may not run, need not end it.
    await db.transaction(async (tx) => {
      await clearHalt(tx, network);
      await resolveAlarms(tx, network, 'halted');
    });
    return {
      data: { network, resumed: true, halt: { at: toIso(halt.at), reason: halt.reason } },
      text: `${reason}\n${network} is resumed: the watcher goes on from where the ledger stands`,
      next: 'see whether it holds with "quittance chain status"',
    };
  });
}

/** Lists the producers that were ever taken over, the newest first: since when, why, and which nodes named them. */
export async function listProducers(terminal: Terminal, options: NetworkOption): Promise<Result> {
  return withDatabase(terminal, async ({ db, config }) => {
    const network = selectNetwork(config, options.network);
    const sets = await readSets(db, network);
    const text = sets.map(({ adoptedAt, reason, nodes, producers }) => {
      const members = producers.map(({ address, signer }) => [
        address,
        signer === address ? '' : `signs with ${signer}`,
      ]);
      return `adopted at ${adoptedAt}: ${reason}, by ${nodes.join(', ')}\n${formatTable(['PRODUCER', 'KEY'], members)}`;
    });
    return {
      data: { network, data: sets },
      text: text.join('\n\n'),
      ...(sets.length === 0
        ? { next: 'no producers yet: the service learns them when it first follows the network' }
        : {}),
    };
  });
}

/** Takes over the producers that the nodes name now, although more changed than a vote can: asked for in so many words. */
export async function acceptNewProducers(
  terminal: Terminal,
  options: NetworkOption & { yes?: boolean },
): Promise<Result> {
  return withNodes(terminal, options.network, async (deps) => {
    if (options.yes !== true) {
      throw new CliError(
        'USAGE',
        'this lets the nodes say who makes blocks, whatever was known before. When you know that the network changed so much, run the command again with --yes',
      );
    }
    const { producers, nodes } = await acceptProducers(deps, await deps.pool.available(), deps.now());
    return {
      data: { network: deps.network, producers: producers.length, nodes },
      text: `took over the ${producers.length} producers that ${nodes.join(' and ')} name`,
      next: 'see whether the watcher goes on with "quittance chain status"',
    };
  });
}

async function readSets(db: Sql, network: Network) {
  return (await findProducerSets(db, network, MAX_SETS)).map(({ adoptedAt, reason, nodes, producers }) => ({
    adoptedAt: toIso(adoptedAt),
    reason,
    nodes,
    producers: producers.map(({ account, signer }) => ({
      address: accountToAddress(account),
      signer: accountToAddress(signer),
    })),
  }));
}
