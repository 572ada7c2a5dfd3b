import { hash } from 'node:crypto';
import type { Day, DayBlock } from './day.ts';

/** The milliseconds for `blocks` blocks in one thread. */
export type Floor = { blocks: number; decodeMs: number; parseMs: number; hashMs: number };

/**
 * Measures the minimum work of any verification, on the same bytes that are served: JSON.parse of both responses, and the SHA-256 by
 * OpenSSL of every transaction id, of every leaf and node of the Merkle tree, and of the header. The bytes to hash are already prepared.
 */
export function measureFloor(day: Day, first: number, blocks: number): Floor {
  const floor: Floor = { blocks, decodeMs: 0, parseMs: 0, hashMs: 0 };
  for (let number = first; number < first + blocks; number += 1) {
    const block = day.block(number);
    if (block === null) throw new Error(`the day has no block ${number}`);
    const answers = [wholeAnswer(block), block.infos()];
    const { made, header } = block.hashed();
    const started = performance.now();
    const texts = answers.map((bytes) => bytes.toString('utf8'));
    const decoded = performance.now();
    let parsed = 0;
    for (const text of texts) parsed += Object.keys(JSON.parse(text)).length;
    const parsedAt = performance.now();
    let level: Buffer[] = [];
    let ids = 0;
    for (const { rawData, whole } of made) {
      ids += hash('sha256', rawData, 'buffer').length;
      level.push(hash('sha256', whole, 'buffer'));
    }
    while (level.length > 1) level = parentsOf(level);
    hash('sha256', header, 'buffer');
    floor.hashMs += performance.now() - parsedAt;
    floor.parseMs += parsedAt - decoded;
    floor.decodeMs += decoded - started;
    if (parsed === 0 || ids === 0) throw new Error('a block of the floor is empty');
  }
  return floor;
}

function parentsOf(level: Buffer[]): Buffer[] {
  const parents: Buffer[] = [];
  for (let index = 0; index < level.length; index += 2) {
    const [left, right] = [level[index], level[index + 1]];
    if (left === undefined) continue;
    parents.push(right === undefined ? left : hash('sha256', Buffer.concat([left, right]), 'buffer'));
  }
  return parents;
}

function wholeAnswer({ head, transactions }: DayBlock): Buffer {
  return Buffer.concat([head, Buffer.from(',"transactions":['), ...transactions, Buffer.from(']}')]);
}
