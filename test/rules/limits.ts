import { twoWayPairs } from './import-graph.ts';
import type { SourceFile } from './source-tree.ts';

/** Lines. More than this holds more than one idea, or is a list that belongs in data. */
export const FILE_LIMIT = 350;
export const FUNCTION_LIMIT = 90;

/** A file or a function above its limit, with where it stands: `src/x.ts:12` and `createX`. */
export type Excess = { where: string; name: string; lines: number };

export function longFiles(files: readonly SourceFile[]): Excess[] {
  return files
    .filter(({ lines }) => lines > FILE_LIMIT)
    .map(({ path, lines }) => ({ where: path, name: 'the file', lines }));
}

export function longFunctions(files: readonly SourceFile[]): Excess[] {
  return files.flatMap(({ path, functions }) =>
    functions
      .filter(({ lines }) => lines > FUNCTION_LIMIT)
      .map(({ name, line, lines }) => ({ where: `${path}:${line}`, name, lines })),
  );
}

/** What breaks a limit, one line each; empty if nothing does. No two folders import each other. */
export function brokenLimits(files: readonly SourceFile[]): string[] {
  return [
    ...[...longFiles(files), ...longFunctions(files)].map(
      ({ where, name, lines }) => `${where}: ${name} has ${lines} lines`,
    ),
    ...twoWayPairs(files).map((pair) => `${pair}: the two folders import each other`),
  ];
}
