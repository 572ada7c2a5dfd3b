import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { addressNeed } from '../../src/core/domain/capacity.ts';

const page = await readFile(new URL('../../docs/guides/addresses.md', import.meta.url), 'utf8');
const amounts = await readFile(new URL('../../docs/explained/amounts.md', import.meta.url), 'utf8');

/** The default surcharge limit. */
const maxSurchargeMicro = 10_000n;

test('the table of docs/guides/addresses.md says how many addresses a shop needs as the code does', () => {
  const rows = [...page.matchAll(/^\| `(tail|exact)` \|([\d.,| ]+)\|$/gm)];
  expect(rows.length).toBeGreaterThan(5);
  for (const [line, name, cells = ''] of rows) {
    const policy = name === 'exact' ? 'exact' : 'tail';
    const [perDay = 0, prices = 0, ...told] = cells.split('|').map((cell) => Number(cell.replaceAll(',', '')));
    const need = addressNeed({ perDay, prices }, { policy, maxSurchargeMicro });
    expect([line, ...told]).toEqual([line, need.daysOfOne, need.for90Days, need.for365Days]);
  }
});

test('the formula of docs/guides/addresses.md and the example of docs/explained/amounts.md have the figures of the code', () => {
  const daysOfOne = (perDay: number) =>
    addressNeed({ perDay, prices: 1 }, { policy: 'tail', maxSurchargeMicro }).daysOfOne;
  expect(page).toContain(`**${daysOfOne(1)} × different amounts ÷ orders a day**`);
  expect(amounts).toContain(
    `If you sell at your most common price 60 times a day, one address lasts ${daysOfOne(60)} days.`,
  );
});
