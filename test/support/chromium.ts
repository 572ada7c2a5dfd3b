import type { Browser } from 'playwright-core';
import { inject } from 'vitest';
import { launchChromiumIn } from './launch-chromium.ts';

/** Starts the Chromium of this test run, which the end of the run deletes. */
export function launchChromium(): Promise<Browser> {
  return launchChromiumIn(inject('runDirectory'));
}
