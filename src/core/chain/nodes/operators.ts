import type { Node } from './node.ts';

/** Returns the first node of each operator, in order of preference, for up to `count` operators. */
export function ofDifferentOperators<Named extends Pick<Node, 'operator'>>(
  nodes: readonly Named[],
  count: number,
): Named[] {
  const operators = new Set<string>();
  return nodes.filter(({ operator }) => {
    if (operators.has(operator) || operators.size >= count) return false;
    operators.add(operator);
    return true;
  });
}
