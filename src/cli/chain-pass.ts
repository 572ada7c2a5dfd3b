import { loadProducers } from '../chain/producers.ts';
import { type ShownBlock, showBlock } from '../chain/show-block.ts';
import { AppError } from '../domain/errors.ts';
import { toIso } from '../domain/time.ts';
import { findCursor } from '../store/chain-cursor.ts';
import { findHeadBlockId } from '../store/head-blocks.ts';
import { insertOperatorActions } from '../store/operator-actions.ts';
import { findPassedBlock, insertPassedBlock } from '../store/passed-blocks.ts';
import { describeShown, describeShownText, findOurs } from './chain-shown-block.ts';
import { CliError } from './cli-error.ts';
import { clip } from './clip.ts';
import { readOperator } from './operator.ts';
import { readReason } from './read-reason.ts';
import type { Result, Terminal } from './terminal.ts';
import { type NodeCommand, withNodes } from './with-nodes.ts';

export type PassOptions = {
  block: string;
  reason?: string;
  id?: string;
  network?: string;
  by?: string;
  yes?: boolean;
};

/** Lets the next block pass that no node can prove, after showing what it holds and who says so. Recorded for ever. */
export async function passBlock(terminal: Terminal, options: PassOptions): Promise<Result> {
  const number = readNumber(options.block);
  const id = options.id === undefined ? null : readBlockId(options.id);
  const reason = readReason(options.reason);
  const by = readOperator(options.by, terminal.env);
  return withNodes(terminal, options.network, async (deps) => {
    const { db, network } = deps;
    const cursor = await refuseOther(deps, number);
    const shown = (await showAll(terminal, deps, number)).filter(({ parentId }) => parentId === cursor.id);
    const block = choose(shown, number, id, cursor);
    const before = await findPassedBlock(db, network, number);
    if (before?.digest === block.digest) {
      throw new CliError(
        'CONFLICT',
        `block ${number} (${block.id}) passes already: ${before.passedBy} said so at ${toIso(before.passedAt)}`,
      );
    }
    const transfers = await findOurs(deps, block);
    const data = describeShown(network, number, shown, block, transfers);
    const text = describeShownText(number, shown, block, transfers);
    if (options.yes !== true) {
      terminal.note(text);
      throw new CliError(
        'USAGE',
        `block ${number} would count on the word of ${shown.map(({ node }) => node.origin).join(' and ')}. When you have compared it ` +
          `with a block explorer, run the command again with --id ${block.id} --yes`,
      );
    }
    const passed = { number, blockId: block.id, digest: block.digest, passedAt: deps.now(), passedBy: by, reason };
    await db.transaction(async (tx) => {
      await insertPassedBlock(tx, network, passed);
      const detail = { network, number, reason, shownBy: data.shownBy.map(({ node }) => node) };
      const action = {
        action: 'block.passed',
        subject: block.id,
        detail,
        actedBy: by,
        actedAt: passed.passedAt,
      } as const;
      await insertOperatorActions(tx, [{ projectId: null, ...action }]);
    });
    return {
      data: { ...data, passedBy: by, passedAt: toIso(passed.passedAt), reason },
      text: `${text}\n\nblock ${number} passes: ${by} said so`,
      next: 'see whether the watcher goes on with "quittance chain status"',
    };
  });
}

function readNumber(text: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new CliError('INVALID_ARGUMENT', `--block ${clip(text)} is no block number: give a whole number from 1 on`);
}

function readBlockId(text: string): string {
  const id = text.trim().toLowerCase();
  if (/^[0-9a-f]{64}$/.test(id)) return id;
  throw new CliError('INVALID_ARGUMENT', `--id ${clip(text)} is no block id: it has 64 hexadecimal characters`);
}

/**
 * Only a block at which the watcher can stand still passes: the one after what was examined, or one after what is recorded. Returns the one
 * before it.
 */
async function refuseOther({ db, network }: NodeCommand, number: number): Promise<{ number: number; id: string }> {
  const cursor = await findCursor(db, network);
  if (cursor === null) throw new CliError('NOT_FOUND', `${network} was never followed here: start the service first`);
  const { solid, head } = cursor;
  const parent = [solid, head].find((block) => block.number === number - 1);
  if (parent !== undefined) return parent;
  const examinedId = number > solid.number ? await findHeadBlockId(db, network, number - 1) : null;
  if (examinedId !== null) return { number: number - 1, id: examinedId };
  const why = number <= solid.number ? 'is recorded already' : 'comes later';
  throw new CliError(
    'INVALID_ARGUMENT',
    `block ${number} ${why}: the next block of ${network} is ${head.number + 1}, and a block up to that can pass`,
  );
}

async function showAll({ note }: Terminal, deps: NodeCommand, number: number): Promise<ShownBlock[]> {
  const shown: ShownBlock[] = [];
  const known = await loadProducers(deps.db, deps.network);
  if (known === null)
    throw new CliError('NOT_FOUND', `the producers of ${deps.network} are not known yet: start the service first`);
  for (const node of await deps.pool.available()) {
    try {
      const block = await showBlock({ ...deps, known }, node, number);
      if (block === null) note(`${node.origin} does not have block ${number}`);
      else shown.push(block);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      note(`${node.origin}: ${error.message}`);
    }
  }
  return shown;
}

function choose(
  shown: readonly ShownBlock[],
  number: number,
  id: string | null,
  cursor: { number: number; id: string },
): ShownBlock {
  const proven = shown.find(({ problem }) => problem === null);
  if (proven !== undefined) {
    throw new CliError(
      'CONFLICT',
      `${proven.node.origin} shows block ${number} (${proven.id}) so that it can be proven: nobody has to let it pass`,
    );
  }
  const ids = [...new Set(shown.map((block) => block.id))];
  const wanted = id ?? (ids.length === 1 ? ids[0] : undefined);
  const chosen = shown.find((block) => block.id === wanted);
  if (chosen !== undefined) return chosen;
  if (ids.length === 0) {
    throw new CliError(
      'NOT_FOUND',
      `no node shows a block ${number} that follows block ${cursor.number} (${cursor.id})`,
    );
  }
  const seen = shown.map(({ node, id: each }) => `${node.origin} shows ${each}`).join('; ');
  throw new CliError(
    'CONFLICT',
    `${id === null ? 'the nodes differ, so say which with --id' : `nobody shows --id ${id}`}: ${seen}`,
  );
}
