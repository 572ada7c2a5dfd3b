import type { TestSpecification } from 'vitest/node';
import { BaseSequencer } from 'vitest/node';

/**
 * The simulated hours, which need the processor all the time, begin in two workers, while the other workers run tests that mostly wait.
 * Then come folders whose files take long despite their size, and the rest of test/. The unit tests of src/ fill the end, beginning with
 * those that wait for hanging nodes.
 */
const RANKS = [
  /\/test\/simulation\/seeds-/,
  /\/test\/(processes|flows|simulation|embedded|cli)\//,
  /\/test\//,
  /\/src\/core\/chain\//,
];

/**
 * Runs long tests first, so that none of them is still running alone at the end. Vitest sorts by the durations of the previous run; a fresh
 * checkout has none, so this sorts by file size.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((a, b) => rankOf(a) - rankOf(b));
  }
}

function rankOf({ moduleId, project }: TestSpecification): number {
  const path = moduleId.slice(project.config.root.length);
  const rank = RANKS.findIndex((pattern) => pattern.test(path));
  return rank === -1 ? RANKS.length : rank;
}
