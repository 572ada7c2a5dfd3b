import type { Reporter, TestModule, Vitest } from 'vitest/node';

/** Lets a change be noticed after which a test file cannot be loaded at all. Stryker counts failed tests only, and that file has none. */
export class LoadFailures implements Reporter {
  private vitest: Vitest | null = null;

  onInit(vitest: Vitest): void {
    this.vitest = vitest;
  }

  onTestModuleEnd(testModule: TestModule): void {
    for (const error of testModule.errors()) this.vitest?.state.catchError(error, 'Load Error');
  }
}
