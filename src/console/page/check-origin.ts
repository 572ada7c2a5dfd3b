import type { FastifyRequest } from 'fastify';
import { AppError } from '../../domain/errors.ts';

/**
 * Refuses a write that does not come from a page of the console. Browsers say where a request comes from by `Sec-Fetch-Site`, older ones by
 * `Origin` alone; whoever says neither is no browser, and the console is for browsers.
 */
export function checkOrigin({ headers }: FastifyRequest, consoleUrl: string): void {
  const { 'sec-fetch-site': site, origin } = headers;
  const isSame = site === undefined ? origin === new URL(consoleUrl).origin : site === 'same-origin';
  if (isSame && (origin === undefined || origin === new URL(consoleUrl).origin)) return;
  throw new AppError(
    'USAGE',
    'this form came from a page outside the console, so nothing was changed: open the page and send the form again',
  );
}
