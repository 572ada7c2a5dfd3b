import type { TestSpecification } from 'vitest/node';
import { BaseSequencer } from 'vitest/node';

/**
 * The simulated hours, which compute all the time, begin in two workers, and beside them in the others what mostly waits. Then folders
 * whose files take long however short they are, and the rest of test/; the unit tests of src/ fill the end, those first that wait for
 * nodes that hang.
 */
const RANKS = [
  /\/test\/simulation\/seeds-/,
  /\/test\/(processes|flows|simulation|embedded|cli)\//,
  /\/test\//,
  /\/src\/chain\//,
];

/**
 * Runs what takes long first, so that no worker is left alone with it at the end. Vitest does so by the durations of the last
 * run, which a fresh checkout does not have: then it goes by the size of the file.
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
