import { USDT_CONTRACTS } from '@quittance/tron/usdt';
import type { Log, MadeTransaction } from './transaction-parts.ts';

/** `address` of a filter of `eth_getLogs` for all logs of USDT. */
export const USDT_FILTER = `0x${USDT_CONTRACTS.mainnet.account}`;

/**
 * The logs of USDT of some transactions of a block as `eth_getLogs` answers them, separated by commas. In each of them one place,
 * of a fixed length, is for the block. `counted` are all logs of these transactions.
 */
export type LogTemplate = { bytes: Buffer; places: number[]; counted: number };

/** Both follow each other, for java-tron sorts fields by the alphabet. Heights have seven digits in hex: up to 268,435,455. */
const placeOf = (id: string, number: number) =>
  `"blockHash":"0x${id}","blockNumber":"0x${number.toString(16).padStart(7, '0')}"`;
const PLACE = placeOf('0'.repeat(64), 0);

/** The transactions are those of a block behind `skipped` others with `skippedLogs` logs. */
export function logTemplate(made: readonly MadeTransaction[], skipped = 0, skippedLogs = 0): LogTemplate {
  const shown: string[] = [];
  let logIndex = skippedLogs;
  for (const [index, { id, info }] of made.entries()) {
    const { log: logs = [] } = JSON.parse(info) as { log?: Log[] };
    for (const { address, topics, data } of logs) {
      if (`0x${address}` === USDT_FILTER) {
        const before = `{"address":"0x${address}",${PLACE},"data":"0x${data}","logIndex":"0x${logIndex.toString(16)}",`;
        const words = topics.map((topic) => `"0x${topic}"`).join();
        const place = `"transactionHash":"0x${id}","transactionIndex":"0x${(skipped + index).toString(16)}"}`;
        shown.push(`${before}"removed":false,"topics":[${words}],${place}`);
      }
      logIndex += 1;
    }
  }
  const bytes = Buffer.from(shown.join());
  const places: number[] = [];
  for (let at = bytes.indexOf(PLACE); at >= 0; at = bytes.indexOf(PLACE, at + PLACE.length)) places.push(at);
  return { bytes, places, counted: logIndex - skippedLogs };
}

/** The same logs as those of a block. */
export function logsOfBlock({ bytes, places }: LogTemplate, { id, number }: { id: string; number: number }): Buffer {
  const logs = Buffer.from(bytes);
  const text = placeOf(id, number);
  for (const place of places) logs.write(text, place, 'latin1');
  return logs;
}
