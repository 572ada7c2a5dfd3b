import type { Reporter, TestModule, Vitest } from 'vitest/node';

/** Reports mutants that keep a test file from loading at all. Stryker only counts failed tests, and such a file has none. */
export class LoadFailures implements Reporter {
  private vitest: Vitest | null = null;

  onInit(vitest: Vitest): void {
    this.vitest = vitest;
  }

  onTestModuleEnd(testModule: TestModule): void {
    for (const error of testModule.errors()) this.vitest?.state.catchError(error, 'Load Error');
  }
}
