import { USDT_CONTRACTS } from '@quittance/tron/usdt';
import type { Log, MadeTransaction } from './transaction-parts.ts';

/** The `address` in an `eth_getLogs` filter for all USDT logs. */
export const USDT_FILTER = `0x${USDT_CONTRACTS.mainnet.account}`;

/**
 * The USDT logs of some transactions of a block, separated by commas, as `eth_getLogs` returns them. Each log has one field of fixed length
 * for the block. `counted` is the number of all logs of these transactions.
 */
export type LogTemplate = { bytes: Buffer; places: number[]; counted: number };

/** The two fields are adjacent, because java-tron sorts fields alphabetically. Heights have seven hexadecimal digits: up to 268,435,455. */
const placeOf = (id: string, number: number) =>
  `"blockHash":"0x${id}","blockNumber":"0x${number.toString(16).padStart(7, '0')}"`;
const PLACE = placeOf('0'.repeat(64), 0);

/** The transactions follow `skipped` other transactions of the block, which have `skippedLogs` logs. */
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

/** Returns the same logs for another block. */
export function logsOfBlock({ bytes, places }: LogTemplate, { id, number }: { id: string; number: number }): Buffer {
  const logs = Buffer.from(bytes);
  const text = placeOf(id, number);
  for (const place of places) logs.write(text, place, 'latin1');
  return logs;
}
