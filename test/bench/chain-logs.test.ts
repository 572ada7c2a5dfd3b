import { USDT_CONTRACTS } from '@quittance/tron/usdt';
import { expect, test } from 'vitest';
import { type DayPlan, makeDay } from '../../bench/ingest/day.ts';
import { answerOf } from '../../bench/ingest/node-answers.ts';

const FIRST = 77_000_000;
const ACCOUNT = 'ab'.repeat(20);
const USDT = USDT_CONTRACTS.mainnet.account;

type Info = { id: string; log?: { address: string; topics: string[]; data: string }[] };

const plan: DayPlan = {
  ...{ firstNumber: FIRST, firstTimeMs: 1_780_000_000_000, slotMs: 3000, blockCount: 130, bodyCount: 3 },
  payments: [
    { number: FIRST + 2, account: ACCOUNT, amountMicro: '5', isDirect: true },
    { number: FIRST + 4, account: ACCOUNT, amountMicro: '6', isDirect: false },
  ],
};
const day = makeDay(plan);

function ask(call: string, parameters: object, top = day.last): unknown {
  const { parts } = answerOf({ day, plan, top }, call, parameters as Record<string, unknown>);
  return JSON.parse(Buffer.concat(parts).toString());
}

function askLogs(from: number, to: number, top?: number): unknown {
  const [fromBlock, toBlock] = [from, to].map((number) => `0x${number.toString(16)}`);
  const filter = { fromBlock, toBlock, address: `0x${USDT}` };
  return ask('jsonrpc', { jsonrpc: '2.0', id: 3, method: 'eth_getLogs', params: [filter] }, top);
}

/** Returns the logs of a node's infos. */
function logsOf(number: number): object[] {
  let counted = 0;
  return (ask('gettransactioninfobyblocknum', { num: number }) as Info[]).flatMap(({ id, log = [] }, index) =>
    log.flatMap(({ address, data, topics }) => {
      const logIndex = `0x${counted.toString(16)}`;
      counted += 1;
      const ofBlock = { blockHash: `0x${day.block(number)?.id}`, blockNumber: `0x${number.toString(16)}` };
      const ofTransaction = { transactionHash: `0x${id}`, transactionIndex: `0x${index.toString(16)}` };
      const shown = { address: `0x${address}`, data: `0x${data}`, topics: topics.map((topic) => `0x${topic}`) };
      return address === USDT ? [{ ...ofBlock, ...ofTransaction, ...shown, logIndex, removed: false }] : [];
    }),
  );
}

test("eth_getLogs of the benchmark's node holds exactly the logs of USDT in its infos, up to its head", () => {
  const expected = Array.from({ length: 7 }, (_, index) => logsOf(FIRST + index)).flat();
  expect(expected).toHaveLength(7 * 90 + 2);
  expect(askLogs(FIRST, FIRST + 6)).toEqual({ jsonrpc: '2.0', id: 3, result: expected });
  expect(askLogs(FIRST, FIRST + 99, FIRST + 6)).toEqual({ jsonrpc: '2.0', id: 3, result: expected });
  expect(askLogs(FIRST + 7, FIRST + 9, FIRST + 6)).toEqual({ jsonrpc: '2.0', id: 3, result: [] });
});

test('more than 10,000 logs are an error: those of 112 blocks', () => {
  expect(askLogs(FIRST, FIRST + 110)).toMatchObject({ result: { length: 9992 } });
  expect(askLogs(FIRST, FIRST + 111)).toMatchObject({
    error: { code: -32005, message: 'query returned more than 10000 results' },
  });
});
