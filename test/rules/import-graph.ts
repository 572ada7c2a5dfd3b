import { posix } from 'node:path';
import type { SourceFile } from './source-tree.ts';

/** Interfaces and tools that the service's own process never loads; only the sandbox and the commands do. */
const NOT_THE_SERVICE = /^src\/(cli|developer)\//;

/**
 * Returns the files that `entry` reaches, including itself: through imports of values and types, and through `import()`, except of commands
 * and the sandbox.
 */
export function reachedFrom(entry: string, files: readonly SourceFile[]): SourceFile[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const reached = new Set<SourceFile>();
  const waiting = [entry];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const file = byPath.get(path);
    if (file === undefined || reached.has(file)) continue;
    reached.add(file);
    waiting.push(...file.imports.filter(({ to, isLate }) => !(isLate && NOT_THE_SERVICE.test(to))).map(({ to }) => to));
  }
  return [...reached];
}

/** What a process loads that starts from these files: imports of values, and not `import()`. */
export function loadedFrom(entries: readonly string[], files: readonly SourceFile[]): SourceFile[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const loaded = new Set<SourceFile>();
  const waiting = [...entries];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const file = byPath.get(path);
    if (file === undefined || loaded.has(file)) continue;
    loaded.add(file);
    waiting.push(...file.imports.filter(({ isLate, isType }) => !isLate && !isType).map(({ to }) => to));
  }
  return [...loaded];
}

/**
 * Returns pairs of folders that import each other, such as `src/cli <-> src/cli/webhook`. `depth` shortens a file's directory to its first
 * parts; by default, a folder and its subfolder are two. Type imports and `import()` count too.
 */
export function twoWayPairs(files: readonly SourceFile[], depth = Number.POSITIVE_INFINITY): string[] {
  const folderOf = (path: string) => posix.dirname(path).split('/').slice(0, depth).join('/');
  const ways = new Set<string>();
  for (const { path, imports } of files) {
    for (const { to } of imports) ways.add(`${folderOf(path)} <-> ${folderOf(to)}`);
  }
  const isPair = (way: string) => {
    const [from = '', to = ''] = way.split(' <-> ');
    return from < to && ways.has(`${to} <-> ${from}`);
  };
  return [...ways].filter(isPair).sort();
}

/** Returns sets of files that all reach each other (Tarjan's strongly connected components of at least two files), each sorted. */
export function importCycles(files: readonly SourceFile[]): string[][] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const index = new Map<string, number>();
  const lowest = new Map<string, number>();
  const stack: string[] = [];
  const cycles: string[][] = [];
  const visit = (path: string): number => {
    const own = index.size;
    index.set(path, own);
    stack.push(path);
    let low = own;
    for (const { to } of byPath.get(path)?.imports ?? []) {
      if (!index.has(to)) low = Math.min(low, visit(to));
      else if (stack.includes(to)) low = Math.min(low, lowest.get(to) ?? index.get(to) ?? own);
    }
    lowest.set(path, low);
    if (low === own) {
      const members = stack.splice(stack.indexOf(path));
      if (members.length > 1) cycles.push(members.sort());
    }
    return low;
  };
  for (const { path } of files) if (!index.has(path)) visit(path);
  return cycles;
}
