import { extname } from 'node:path';
import type { TestSpecification } from 'vitest/node';
import { BaseSequencer } from 'vitest/node';

/**
 * Runs a mutant only against the test beside its file if there is one, and otherwise against all tests that reach the file. That demands
 * more of each test than a distant test failing by chance, and takes a tenth of the time.
 */
export class OwnTests extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    // Here Stryker names the changed file. The first run, without a mutant, is related to all of them.
    const [changed, ...more] = this.ctx.config.related ?? [];
    if (changed === undefined || more.length > 0) return sorted;
    const own = changed.slice(0, -extname(changed).length);
    const beside = sorted.filter(({ moduleId }) => moduleId === `${own}.test.ts`);
    return beside.length > 0 ? beside : sorted;
  }
}
