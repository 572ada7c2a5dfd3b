import { readFile } from 'node:fs/promises';

/** A target and the measured value of this run. `reach` is text for people, as in `≥ 0.90`. */
export type Target = { name: string; reach: string; measured: number; isReached: boolean };

/** Formats targets in Markdown, missed ones first, next to those of an older run. */
export function targetTable(targets: readonly Target[], older: readonly Target[] | null): string {
  const rows = targets
    .toSorted((a, b) => Number(a.isReached) - Number(b.isReached))
    .map(({ name, reach, measured, isReached }) => {
      const row = [name, reach, showFigure(measured), isReached ? 'yes' : 'NO'];
      if (older === null) return row;
      const before = older.find((other) => other.name === name);
      if (before === undefined) return [...row, '–', '–'];
      const change = showFigure(measured / before.measured);
      return [...row, `${showFigure(before.measured)}${before.isReached ? '' : ', NO'}`, change];
    });
  return table(['target', 'reach', 'measured', 'reached', ...(older === null ? [] : ['before', 'now / before'])], rows);
}

/** Returns the targets of an earlier run's result. Throws if the file isn't a result, or belongs to another benchmark. */
export async function readTargets(path: string, name: string): Promise<Target[]> {
  const record = JSON.parse(await readFile(path, 'utf8')) as { name?: unknown; targets?: unknown };
  if (record.name !== name) throw new Error(`${path} is no result of the benchmark ${name}`);
  if (!Array.isArray(record.targets)) throw new Error(`${path} holds no targets to compare with`);
  return record.targets as Target[];
}

/** None of these figures is more accurate than three digits. */
function showFigure(figure: number): string {
  return Math.abs(figure) >= 100 ? figure.toFixed(0) : figure.toPrecision(3);
}

/** Formats a table in Markdown, with padding. */
export function table(head: (string | number)[], rows: (string | number)[][]): string {
  const cells = [head, ...rows].map((row) => row.map(String));
  const widths = head.map((_, column) => Math.max(3, ...cells.map((row) => row[column]?.length ?? 0)));
  const line = (row: string[]) => `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  const [first = [], ...rest] = cells;
  return [line(first), `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`, ...rest.map(line)].join('\n');
}
