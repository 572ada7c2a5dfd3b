import type { AccountHex } from '@quittance/tron/address';
import { expect, test } from 'vitest';
import type { ChainTransfer } from '../../domain/chain-block.ts';
import { unixMs } from '../../domain/time.ts';
import type { Node } from '../nodes/node.ts';
import type { ExaminedBlock } from '../proof/prove-block.ts';
import type { BlockLogs } from '../verify/read-logs.ts';
import { addVote, createWindow, settle, toChainBlock, toWindowBlock, type WindowBlock } from './window.ts';

const account = (digit: string) => digit.repeat(40) as AccountHex;

function nodeOf(operator: string, place = 1): Node {
  const origin = `http://${operator}-${place}`;
  return {
    url: origin,
    origin,
    operator,
    hasBytes: false,
    isOpenFor: () => false,
    setAside: () => undefined,
    requestsLeft: () => null,
    ask: () => Promise.reject(new Error('nobody is asked here')),
  };
}

function transferOf(txDigit: string, isProven: boolean): ChainTransfer {
  return { txId: txDigit.repeat(64), logIndex: 0, from: account('1'), to: account('2'), amount: 5n, isProven };
}

/** Logs with one proven transfer, and as many others as there are letters in `digest`. */
function logsOf(digest: string): BlockLogs {
  const internal = [...digest].map((_, index) => transferOf(String(index), false));
  return {
    transfers: [transferOf('f', true), ...internal],
    events: [],
    digest,
    hasOddSplit: false,
    isForwarded: false,
    successor: null,
  };
}

function blockShownBy(node: Node, digest: string) {
  const block = {
    number: 7,
    id: '7'.repeat(64),
    parentId: '6'.repeat(64),
    time: unixMs(1_800_000_000_000),
    producer: account('a'),
    signer: account('b'),
    isProven: true,
    transactions: [],
  } as unknown as ExaminedBlock;
  return toWindowBlock({ node, block, logs: logsOf(digest), word: null }, account('b'));
}

test('two of three operators decide, and the evidence names those two', () => {
  const block = blockShownBy(nodeOf('liar'), 'xx');
  addVote(block, nodeOf('first'), logsOf('x'), 2);
  expect(block.agreed).toBe(null);
  addVote(block, nodeOf('second'), logsOf('x'), 2);
  expect(block.agreed?.logs.digest).toBe('x');
  expect(block.agreed?.evidence).toEqual({ nodes: ['http://first-1', 'http://second-1'], operatorCount: 2 });
});

test('two nodes of one operator are one vote', () => {
  const block = blockShownBy(nodeOf('same', 1), 'x');
  addVote(block, nodeOf('same', 2), logsOf('x'), 2);
  expect(block.agreed).toBe(null);
});

test('an operator that corrects itself takes its first vote back', () => {
  const block = blockShownBy(nodeOf('first'), 'x');
  addVote(block, nodeOf('second'), logsOf('xx'), 2);
  addVote(block, nodeOf('second'), logsOf('x'), 2);
  expect(block.agreed?.logs.digest).toBe('x');
});

test('operators that all differ settle nothing', () => {
  const block = blockShownBy(nodeOf('first'), '');
  addVote(block, nodeOf('second'), logsOf('x'), 2);
  addVote(block, nodeOf('third'), logsOf('xx'), 2);
  expect(block.agreed).toBe(null);
});

test('what was agreed on does not change any more', () => {
  const block = blockShownBy(nodeOf('first'), 'x');
  addVote(block, nodeOf('second'), logsOf('x'), 2);
  addVote(block, nodeOf('third'), logsOf('xx'), 1);
  expect(block.agreed?.logs.digest).toBe('x');
});

test('one operator is enough where one is asked for', () => {
  const block = blockShownBy(nodeOf('only'), 'x');
  settle(block, 1);
  expect(block.agreed?.evidence).toEqual({ nodes: ['http://only-1'], operatorCount: 1 });
});

test('until operators agree only what the header proves is shown, then everything', () => {
  const block = blockShownBy(nodeOf('first'), 'xx');
  expect(toChainBlock(block).transfers).toEqual([transferOf('f', true)]);
  addVote(block, nodeOf('second'), logsOf('xx'), 2);
  expect(toChainBlock(block).transfers).toHaveLength(3);
});

const SOLID = { number: 6, id: '6', time: unixMs(6000) };

/** A block on top of `parent`, on which operators agree. */
function blockOn(parent: { number: number; id: string }, id = String(parent.number + 1)): WindowBlock {
  const number = parent.number + 1;
  const own = { number, id, parentId: parent.id, time: unixMs(number * 1000) };
  const block = { ...blockShownBy(nodeOf('only'), 'x'), ...own };
  settle(block, 1);
  return block;
}

function windowOf(count: number) {
  const window = createWindow(SOLID, Number.POSITIVE_INFINITY);
  for (let made = 0; made < count; made += 1) window.append(blockOn(window.tip()));
  return window;
}

test('a window takes a block only on top of its newest one', () => {
  const window = windowOf(1);
  const other = blockOn(SOLID);
  expect(window.append(other)).toBe(false);
  expect(window.couldAppend([blockOn({ number: 7, id: 'another' })])).toBe(false);
  expect(window.couldAppend([blockOn(window.tip()), blockOn({ number: 8, id: '8' })])).toBe(true);
  expect(window.tip()).toMatchObject({ number: 7, id: '7' });
  window.replaceFrom(0, blockOn({ number: 7, id: '7' }));
  expect(window.isLinked()).toBe(false);
});

test('what was recorded is the new base, and only blocks that were sighted are remembered as orphaned', () => {
  const window = windowOf(3);
  window.onSighted(window.blocks.slice(0, 2), new Set([8]));
  expect(window.blocks.map(({ hasSighting }) => hasSighting)).toEqual([false, true, false]);
  window.onRecorded(1);
  expect(window.base()).toEqual({ number: 7, id: '7', time: 7000 });
  window.drop();
  expect(window.orphaned.map(({ number }) => number)).toEqual([8]);
  expect(window.tip()).toEqual(window.base());
  window.onSighted([], new Set());
  expect(window.orphaned).toEqual([]);
});

test('time is certain up to an open block, and detected up to one that is not sighted or not judged', () => {
  const window = windowOf(3);
  expect([window.certainTime(), window.detectedTime()]).toEqual([9000, 6000]);
  window.onSighted(window.blocks, new Set());
  expect(window.detectedTime()).toBe(9000);
  window.append({ ...blockOn(window.tip()), agreed: null });
  expect([window.certainTime(), window.detectedTime(), window.countOpen()]).toEqual([9000, 9000, 1]);
  window.onJudged(8);
  expect([window.certainTime(), window.detectedTime()]).toEqual([8000, 8000]);
  window.onSightingsLost();
  expect(window.detectedTime()).toBe(6000);
});
