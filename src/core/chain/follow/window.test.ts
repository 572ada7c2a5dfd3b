import type { AccountHex } from '@quittance/tron/address';
import { expect, test } from 'vitest';
import type { ChainTransfer } from '../../domain/chain-block.ts';
import { unixMs } from '../../domain/time.ts';
import type { Node } from '../nodes/node.ts';
import type { ExaminedBlock } from '../proof/prove-block.ts';
import type { BlockLogs } from '../verify/read-logs.ts';
import { addVote, settle, toChainBlock, toWindowBlock } from './window.ts';

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
