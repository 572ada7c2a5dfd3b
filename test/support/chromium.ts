import type { Browser } from 'playwright-core';
import { inject } from 'vitest';
import { launchChromiumIn } from './launch-chromium.ts';

/** Starts the test run's Chromium, which is deleted at the end of the run. */
export function launchChromium(): Promise<Browser> {
  return launchChromiumIn(inject('runDirectory'));
}
