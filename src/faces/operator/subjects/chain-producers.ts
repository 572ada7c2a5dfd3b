import { type AccountHex, accountToAddress } from '@quittance/tron/address';
import { type Node, ofDifferentOperators } from '../../../core/chain/nodes/node.ts';
import { blockAt, infosOf } from '../../../core/chain/nodes/questions.ts';
import { type Checkpoint, readCheckpoint, writeCheckpoint } from '../../../core/chain/proof/checkpoints.ts';
import { type ExaminedBlock, examineBlock } from '../../../core/chain/proof/prove-block.ts';
import { isSignedBy, type KnownProducers, loadProducers, nameProducers } from '../../../core/chain/verify/producers.ts';
import { type ChainParameters, digestWord } from '../../../core/chain/verify/read-block.ts';
import { readLogs } from '../../../core/chain/verify/read-logs.ts';
import { createWalk, explainedBy, idShownBy, readRun } from '../../../core/chain/verify/walk-producers.ts';
import type { ChainTransfer } from '../../../core/domain/chain-block.ts';
import { AppError, conflict, invalidArgument, notFound, usageError } from '../../../core/domain/errors.ts';
import { encodeId } from '../../../core/domain/ids.ts';
import { say } from '../../../core/domain/message.ts';
import { formatAmount, microUsdt } from '../../../core/domain/money.ts';
import type { Network } from '../../../core/domain/network.ts';
import { toIso, type UnixMs } from '../../../core/domain/time.ts';
import { Type } from '../../../core/runtime/type.ts';
import { findHalt, findHeadBlockId } from '../../../core/store/chain/cursor.ts';
import { findIncoming } from '../../../core/store/chain/incoming.ts';
import { findPassedBlock, insertPassedBlock } from '../../../core/store/chain/passed-blocks.ts';
import { findProducerSets, insertProducerSet, type ProducerSet } from '../../../core/store/chain/producer-sets.ts';
import type { Sql } from '../../../core/store/db/database.ts';
import type { Actor } from '../actor.ts';
import { columnsText, fieldsText, formatFields } from '../command-words.ts';
import { type Field, list, of, part, type Shown, schemaOf, show, text, texts, time, whole } from '../fields.ts';
import { clip, FieldError } from '../input/problems.ts';
import { readReason } from '../input/readers.ts';
import { localOperation, type NodeDeps, operation } from '../operation.ts';
import { DECIDED_BY, decidingFile, decidingFlag, flag, line, needed, networkName } from '../option.ts';
import { recordAction } from '../record-actions.ts';
import { selectNetwork, withNodesOf } from '../select.ts';
import { followedCursor, readHeight } from './chain-blocks.ts';

const account: Field<AccountHex, string> = { ...text, show: accountToAddress };
/** Each producer with its signing key. */
const producers = list(part({ address: of('account', account), signer: account }));
const adopted = { adoptedAt: time, reason: text, nodes: texts, producers };
const listed = { network: text, data: list(part(adopted)) };
export type ProducersView = Shown<typeof listed>;

const MAX_LISTED = 100;

/** Lists every adopted producer set, newest first, with the time and reason of its adoption, and the nodes that reported it. */
export async function findProducers(db: Sql, network: Network): Promise<ProducersView> {
  return show(listed, { network, data: await findProducerSets(db, network, MAX_LISTED) });
}

const listProducers = operation({
  action: 'listProducers',
  summary: 'List the block producers and their changes: when, why, and which nodes reported them',
  route: 'GET /chain/:network/producers',
  command: 'chain producers',
  input: Type.Object({ network: networkName() }),
  output: schemaOf(listed),
  run: ({ db, networks }, _actor, { network }) => findProducers(db, selectNetwork(networks, network)),
  print: ({ data }) => {
    const sets = data.map(({ adoptedAt, reason, nodes, producers }) => {
      const table = columnsText(producers, [
        ['PRODUCER', 'address'],
        ['KEY', ({ address, signer }) => (signer === address ? '' : `signs with ${signer}`)],
      ]);
      return `active since ${adoptedAt}: ${reason}, by ${nodes.join(', ')}\n${table}`;
    });
    const none = 'no producers yet: the service reads them when it first follows the network';
    return { text: sets, next: sets.length === 0 && none };
  },
});

/**
 * Adopts the producers that the nodes report now, although more producers changed than a single vote can change. A person confirms that the
 * network really changed this much.
 */
const acceptProducers = localOperation({
  action: 'acceptProducers',
  command: 'chain producers',
  does: 'list the block producers and their changes: when, why, and which nodes reported them',
  input: Type.Object({
    accept: decidingFlag(
      'accept the producers that the nodes report now, although more producers changed than in a normal vote',
    ),
    isConfirmed: flag(say`with ${{ field: 'accept' }}: confirm that the network really changed this much`),
    network: networkName(),
  }),
  run: (deps, actor, { network: name, isConfirmed = false }) =>
    withNodesOf(deps, name, async (nodes) => {
      if (!isConfirmed)
        throw usageError`this command replaces the known list of block producers with the nodes' list. If you know that the network really changed this much, run the command again with ${{ field: 'isConfirmed' }}`;
      const { db, network, pool, now } = nodes;
      const clock = now();
      const named = await nameProducers(nodes, await pool.available(), { clock, reason: 'operator' });
      const detail = { producers: named.producers.length, nodes: named.nodes };
      await db.transaction(async (tx) => {
        await insertProducerSet(tx, network, named);
        await recordAction(tx, actor, clock, 'producers.accepted', { subject: network, detail });
      });
      return { network, ...detail };
    }),
  print: ({ producers, nodes }) => ({
    text: `accepted the ${producers} producers reported by ${nodes.join(' and ')}`,
    next: say`check that the watcher continues with "${{ command: 'chain status' }}"`,
  }),
});

const checkpoint = { network: text, number: whole, id: text, time: text, producers };

/** Returns the ledger's newest block with the producers in force. Throws `NOT_FOUND`, or `CONFLICT` while the watcher is halted. */
const makeCheckpoint = operation({
  action: 'makeCheckpoint',
  summary: 'Show the last recorded block with its producers, as a checkpoint that releases include for first starts',
  route: 'GET /chain/:network/checkpoint',
  command: 'chain checkpoint',
  input: Type.Object({ network: networkName() }),
  output: schemaOf({ ...checkpoint, time }),
  run: async ({ db, networks }, _actor, { network: name }) => {
    const network = selectNetwork(networks, name);
    const { solid } = await followedCursor(db, network);
    const halt = await findHalt(db, network);
    if (halt !== null) throw conflict`${network} is halted, so its last recorded block is in doubt`;
    const [set] = await findProducerSets(db, network, 1);
    if (set === undefined || solid.number === 0)
      throw notFound`${network} has not been followed long enough: let the service run for a while`;
    return writeCheckpoint({ network, ...solid, producers: set.producers });
  },
  // Prints JSON even for people, because they write it to a file.
  print: (data) => ({
    text: JSON.stringify(data, null, 2),
    next: say`write this output to a file, and check the file with another instance: ${{ command: 'chain checkpoint', input: { check: 'FILE' } }}`,
  }),
});

/** A checkpoint is many times smaller than this. */
const CHECKPOINT_BYTES = 100_000;

/** Fails if the checkpoint has any problem. */
const checkOperation = localOperation({
  action: 'checkCheckpoint',
  command: 'chain checkpoint',
  does: 'show the last recorded block with its producers, as a checkpoint that releases include for first starts; for maintainers',
  input: Type.Object({
    check: decidingFile(
      '<file>',
      'check a checkpoint file against your nodes and this ledger; exits 1 if the check fails',
      { of: 'a checkpoint', mostBytes: CHECKPOINT_BYTES },
    ),
    network: networkName(),
  }),
  read: ({ check, network }) => {
    const checkpoint = readCheckpoint(readJson(check));
    return { checkpoint, file: check.file, network: network ?? checkpoint.network };
  },
  run: (deps, _actor, { checkpoint, file, network }) =>
    withNodesOf(deps, network, async (nodes) => {
      if (nodes.network === checkpoint.network) return checkCheckpoint(nodes, checkpoint);
      throw invalidArgument`${clip(file)} is a checkpoint for ${checkpoint.network}, not for ${nodes.network}`;
    }),
  print: ({ view: checked, producerCount }) => {
    const { number, id, isShown, isSigned, isRecorded, isLeading, leadsTo, isGood, nodes } = checked;
    const enough = (is: boolean) => (is ? 'enough' : 'too few');
    const fields = formatFields([
      ['block', `${number} (${id}) was ${isShown ? '' : 'not '}returned by enough operators`],
      ['signatures', `${enough(isSigned)} of its ${producerCount} producers signed the blocks after it`],
      ['producers', `this ledger has ${isRecorded ? 'used' : 'never used'} these producers with these keys`],
      ['now', `the chain after this block leads to ${leadsTo} of the current producers, which is ${enough(isLeading)}`],
      ['verdict', isGood ? 'good' : 'NOT GOOD'],
    ]);
    const table = columnsText(nodes, [
      ['NODE', 'origin'],
      ['SHOWS', ({ shows }) => (shows === 'same' ? 'this block' : shows)],
    ]);
    const next = !isGood && 'do not ship this checkpoint: see CONTRIBUTING.md';
    return { text: [fields, table], next, hasFailed: !isGood };
  },
});

function readJson({ file, content, unread }: { file: string; content: string; unread?: string }): unknown {
  if (unread !== undefined) throw new FieldError('check', `${clip(file)} ${unread}`);
  try {
    return JSON.parse(Buffer.from(content, 'base64').toString());
  } catch {
    throw new FieldError('check', `${clip(file)} is not valid JSON`);
  }
}

/** Even in several years, a network adopts fewer producer sets than this. */
const MAX_SETS = 1000;

/**
 * Verifies a checkpoint as anyone who follows the network can: with the configured nodes, with signatures, and with the ledger up to its
 * newest block. Changes nothing. Throws `NOT_FOUND`, `NO_NODE`, `INVALID_ARGUMENT` if the checkpoint is above that block, or
 * `CHAIN_CONTRADICTION` if no node's blocks lead from it to the ledger.
 */
async function checkCheckpoint(deps: NodeDeps, checkpoint: Checkpoint) {
  const { db, network, pool, agreement } = deps;
  const { number, id } = checkpoint;
  const { solid } = await followedCursor(db, network);
  if (number > solid.number)
    throw invalidArgument`the checkpoint is block ${number}, but the ledger is only at ${solid.number}: check it when the ledger has passed that block`;
  const available = await pool.available();
  const asked = ofDifferentOperators(available, available.length);
  const showing = asked.map(async (node) => {
    const shown = await idShownBy(deps, node, number);
    const shows = shown === null ? 'nothing' : shown === id ? 'same' : 'another';
    return { node, origin: node.origin, shows } as const;
  });
  const nodes = await Promise.all(showing);
  const same = nodes.filter(({ shows }) => shows === 'same');
  const isShown = same.length >= agreement && nodes.every(({ shows }) => shows !== 'another');
  const [first] = same;
  const run = first && (await readRun(deps, first.node, number, checkpoint.producers));
  const isSigned = run != null && run.id === id && run.members !== null;
  const sets = await findProducerSets(db, network, MAX_SETS);
  const isRecorded = sets.some(({ producers }) => textOf(producers) === textOf(checkpoint.producers));
  const walked = await createWalk(deps, checkpoint).to(asked, solid);
  const { count, isEnough } = explainedBy(walked, sets[0]?.producers ?? []);
  const view = {
    ...{ network, number, id },
    nodes: nodes.map(({ origin, shows }) => ({ origin, shows })),
    // `isShown` means that enough operators return the checkpoint's block, and none returns another. `isSigned` means that enough of its
    // producers signed the blocks that begin with it. `isRecorded` means that its producers and keys were in force in this ledger.
    // `leadsTo` counts those of the ledger's current producers that the checkpoint leads to.
    ...{ isShown, isSigned, isRecorded, leadsTo: count, isLeading: isEnough },
    isGood: isShown && isSigned && isRecorded && isEnough,
  };
  return { view, producerCount: checkpoint.producers.length };
}

function textOf(producers: ProducerSet['producers']): string {
  const pairs = producers.map(({ account, signer }) => `${account} ${signer}`);
  return pairs.sort().join();
}

/** The block that the operator means. `id` is `null` if the nodes return only one block with this number. */
type Wanted = { number: number; id: string | null };

/** Reads which block the operator means. Throws `INVALID_ARGUMENT`. */
function readWantedBlock(input: { block: string; id?: string | undefined }): Wanted {
  const number = readHeight('block', input.block);
  if (input.id === undefined) return { number, id: null };
  const id = input.id.trim().toLowerCase();
  if (/^[0-9a-f]{64}$/.test(id)) return { number, id };
  throw new FieldError('id', `${clip(input.id)} is not a block id, which has 64 hexadecimal characters`);
}

/** `onSilent` is called for each node that doesn't return the block. `reason` is `null` if the node doesn't have it. */
type Deps = NodeDeps & { onSilent(origin: string, reason: string | null): void };

/** A block with its transfers to our addresses. */
type ShownBlockView = Awaited<ReturnType<typeof describe>>;
/** `transactionCounts` lists the number of transactions in the block from each node, in the order of `view.shownBy`. */
type Passed = {
  view: ShownBlockView & { passedBy?: string; passedAt?: string; reason?: string };
  transactionCounts: readonly number[];
};

/**
 * If no node can prove the next block, shows its content and the nodes that return it. If the operator has compared it with another source
 * (`isCompared`), lets the block pass, which is recorded permanently. Throws `NOT_FOUND`, `INVALID_ARGUMENT` or `CONFLICT`.
 */
export async function passBlock(
  deps: Deps,
  actor: Actor,
  { number, id, reason, isCompared }: Wanted & { reason: string; isCompared: boolean },
): Promise<Passed> {
  const { db, network } = deps;
  const passedBy = actor.name;
  const parent = await findParent(deps, number);
  const shown = (await showAll(deps, number)).filter(({ parentId }) => parentId === parent.id);
  const block = choose(shown, { number, id }, parent);
  const before = await findPassedBlock(db, network, number);
  if (before?.digest === block.digest)
    throw conflict`block ${number} (${block.id}) was already accepted by ${before.passedBy} at ${toIso(before.passedAt)}`;
  const view = await describe(deps, { number, shown, block });
  const transactionCounts = shown.map(({ transactionCount }) => transactionCount);
  if (!isCompared) return { view, transactionCounts };
  const passedAt = deps.now();
  await db.transaction(async (tx) => {
    const { id: blockId, digest } = block;
    await insertPassedBlock(tx, network, { number, blockId, digest, passedAt, passedBy, reason });
    const detail = { network, number, reason, shownBy: view.shownBy.map(({ node }) => node) };
    await recordAction(tx, actor, passedAt, 'block.passed', { subject: block.id, detail });
  });
  return { view: { ...view, passedBy, passedAt: toIso(passedAt), reason }, transactionCounts };
}

/**
 * Returns the block before this one. Only a block that can hold up the watcher may pass: the one after the last examined block, or after
 * the last recorded one.
 */
async function findParent({ db, network }: Deps, number: number): Promise<{ number: number; id: string }> {
  const { solid, head } = await followedCursor(db, network);
  const parent = [solid, head].find((block) => block.number === number - 1);
  if (parent !== undefined) return parent;
  const examinedId = number > solid.number ? await findHeadBlockId(db, network, number - 1) : null;
  if (examinedId !== null) return { number: number - 1, id: examinedId };
  const why = number <= solid.number ? 'is already recorded' : 'is too new';
  throw invalidArgument`block ${number} ${why}: the next ${network} block is ${head.number + 1}, and only blocks up to that block can be accepted`;
}

async function showAll(deps: Deps, number: number): Promise<ShownBlock[]> {
  const shown: ShownBlock[] = [];
  const known = await loadProducers(deps.db, deps.network);
  if (known === null) throw notFound`the ${deps.network} producers are not known yet: start the service first`;
  for (const node of await deps.pool.available()) {
    try {
      const block = await showBlock({ ...deps, known }, node, number);
      if (block === null) deps.onSilent(node.origin, null);
      else shown.push(block);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      deps.onSilent(node.origin, error.message);
    }
  }
  return shown;
}

function choose(shown: readonly ShownBlock[], { number, id }: Wanted, parent: { number: number; id: string }) {
  const proven = shown.find(({ problem }) => problem === null);
  if (proven !== undefined)
    throw conflict`${proven.node.origin} returned block ${number} (${proven.id}) with a valid proof, so you don't have to accept it by hand`;
  const ids = [...new Set(shown.map((block) => block.id))];
  const wanted = id ?? (ids.length === 1 ? ids[0] : undefined);
  const chosen = shown.find((block) => block.id === wanted);
  if (chosen !== undefined) return chosen;
  if (ids.length === 0)
    throw notFound`no node returned a block ${number} whose parent is block ${parent.number} (${parent.id})`;
  const seen = shown.map(({ node, id: each }) => `${node.origin} returned ${each}`).join('; ');
  throw new AppError(
    'CONFLICT',
    id === null
      ? say`the nodes returned different blocks, so choose one with ${{ field: 'id' }}: ${seen}`
      : say`no node returned ${{ field: 'id' }} ${id}: ${seen}`,
  );
}

/** Adds the transfers that the block would bring to our addresses, and the invoices that they would pay. */
async function describe(
  { db, network }: Deps,
  { number, shown, block }: { number: number; shown: readonly ShownBlock[]; block: ShownBlock },
) {
  const { id: blockId, time: blockTime, transactionCount, isHeaderProven } = block;
  const placed = block.transfers.map((transfer) => ({ ...transfer, blockId, blockTime }));
  const transfers = (await findIncoming(db, network, placed)).flatMap(({ index, address, invoice }) => {
    const transfer = placed[index];
    if (transfer === undefined) return [];
    const { txId, logIndex, amount } = transfer;
    const paid = { invoiceId: invoice && encodeId('inv', invoice.id), status: invoice?.status ?? null };
    return [{ txId, logIndex, address, amount: formatAmount(microUsdt(amount)), ...paid }];
  });
  const shownBy = shown.map(({ node: { origin, operator }, id, problem }) => {
    return { node: origin, operator, blockId: id, problem };
  });
  return { network, number, blockId, transactionCount, isHeaderProven, shownBy, transfers };
}

/** A block as one node returns it, proven or not. `id` and `parentId` are 64 hex characters. */
type ShownBlock = {
  node: Node;
  id: string;
  parentId: string;
  time: UnixMs;
  /** A digest over the block's whole content (64 hex characters). Nodes that return the same content have the same digest. */
  digest: string;
  transactionCount: number;
  /** The USDT transfers in the logs that the node returns. */
  transfers: ChainTransfer[];
  /** Why the block can't be proven, or `null` if it can. */
  problem: string | null;
  /** Whether the id and the signature match the header and a known producer signed the header, regardless of the block's content. */
  isHeaderProven: boolean;
};

/**
 * Shows the content of a block as a node returns it, for a person to judge. Doesn't pause any node. A forged block isn't proven even if its
 * hashes fit, because a known producer must have signed it. Returns `null` if the node doesn't have the block. Throws `NODE_REFUSED`, or
 * `BLOCK_UNVERIFIABLE` if the node's answers contradict each other.
 */
async function showBlock(
  { usdt, slotMs, known }: ChainParameters & { known: KnownProducers },
  node: Node,
  number: number,
): Promise<ShownBlock | null> {
  const shown = await node.ask(blockAt(number));
  if (shown === null) return null;
  const block = examineBlock(shown, { number, slotMs, usdt });
  const logs = readLogs(block, await node.ask(infosOf(number, usdt)), usdt);
  return {
    ...{ node, id: block.id, parentId: block.parentId, time: block.time, digest: digestWord(block, logs) },
    ...{ transactionCount: block.transactions.length, transfers: logs.transfers },
    ...{ problem: problemOf(known, block), isHeaderProven: isSignedBy(known, block) },
  };
}

function problemOf(known: KnownProducers, block: ExaminedBlock): string | null {
  if (!block.isProven) return 'the JSON from the node lacks data that the block header requires';
  if (isSignedBy(known, block)) return null;
  const signer = block.signer === null ? 'an unknown account' : accountToAddress(block.signer);
  return `signed by ${signer}, which is not a known producer`;
}

const passOperation = localOperation({
  action: 'passBlock',
  command: 'chain pass',
  does: 'accept a block that no node can prove; the first run shows its content and the nodes that return it',
  input: Type.Object({
    block: needed('<number>', 'number of the block at which the watcher is waiting'),
    reason: needed('<text>', 'reason (recorded in the audit log)'),
    id: line('<block-id>', 'id of the block that you checked, 64 hexadecimal characters'),
    isConfirmed: flag('confirm that you checked the block against another source'),
    network: networkName(),
  }),
  by: DECIDED_BY,
  read: ({ network, block, id, reason, isConfirmed = false }) => ({
    ...{ network, ...readWantedBlock({ block, id }), reason: readReason(reason), isCompared: isConfirmed },
  }),
  run: (deps, actor, { network, ...wanted }) => {
    const onSilent = (origin: string, why: string | null) =>
      deps.note(why === null ? `${origin} does not have block ${wanted.number}` : `${origin}: ${why}`);
    return withNodesOf(deps, network, (nodes) => passBlock({ ...nodes, onSilent }, actor, wanted));
  },
  print: ({ view, transactionCounts }) => {
    const { number, blockId, isHeaderProven, shownBy, transfers, passedBy } = view;
    const fields = fieldsText(view, [
      ['block', 'number'],
      ['id', 'blockId'],
      ['header', () => (isHeaderProven ? 'signed by a known producer, with a matching id' : 'not proven either')],
      ['transactions', 'transactionCount'],
      ['to your addresses', () => `${transfers.length} USDT transfers`],
    ]);
    const nodes = columnsText(shownBy, [
      ['SHOWN BY', 'node'],
      ['OPERATOR', 'operator'],
      ['BLOCK', (shown) => (shown.blockId === blockId ? 'this one' : shown.blockId)],
      ['TRANSACTIONS', (shown) => String(transactionCounts[shownBy.indexOf(shown)])],
      ['WHY NOT PROVEN', 'problem'],
    ]);
    const payments = columnsText(transfers, [
      ['USDT', 'amount'],
      ['ADDRESS', 'address'],
      ['INVOICE', ({ invoiceId, status }) => (invoiceId === null ? '' : `${invoiceId}, ${status}`)],
      ['TRANSFER', ({ txId, logIndex }) => `${txId}:${logIndex}`],
    ]);
    const text = [fields, nodes, payments];
    if (passedBy === undefined) {
      const sources = shownBy.map(({ node }) => node).join(' and ');
      return {
        text,
        refusal: say`block ${number} would be accepted only because ${sources} returned it. When you have checked the block in a block explorer, run the command again with ${{ field: 'id' }} ${blockId} ${{ field: 'isConfirmed' }}`,
      };
    }
    return {
      text: [...text, `block ${number} was accepted by ${passedBy}`],
      next: say`check that the watcher continues with "${{ command: 'chain status' }}"`,
    };
  },
});

export const operations = [passOperation, listProducers, acceptProducers, makeCheckpoint, checkOperation] as const;
