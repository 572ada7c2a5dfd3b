import { existsSync } from 'node:fs';
import { PACKAGE_ROOT } from '../../runtime/package-root.ts';
import type { SandboxFile } from './sandbox-file.ts';

/** Commands that a newcomer can paste, from the first invoice to its webhook. `order` is an external id that has no invoice yet. */
export function quickStart({ baseUrl, apiKey, inboxUrl }: SandboxFile, order: string): string {
  return `
Quittance sandbox: a local TRON network, a demo project, test money only. Paste these into another terminal:

1. Create an invoice:

   curl -sS ${baseUrl}/v1/invoices \\
     -H 'X-Api-Key: ${apiKey}' \\
     -H 'Idempotency-Key: ${order}' \\
     -H 'Content-Type: application/json' \\
     -d '{"amount":"25.00","asset":"USDT","network":"TRON","externalId":"${order}"}'

2. Open the checkoutUrl of the answer in a browser.

3. Pay it (in this directory):

   ${quittanceCommand()} sandbox pay ${order}

4. See the webhooks that arrived and were verified:

   curl -sS ${inboxUrl}

Ctrl-C stops everything; the next start goes on where this one ended.

`;
}

/** What stands below the rest, for it comes a moment later. */
export function consoleLink(link: string): string {
  return `See it as the merchant does, in the console; this link signs you in:

   ${link}

`;
}

/**
 * An installed package has no sources, so npm's scripts don't work there; one that npm didn't install, such as the Debian package, has no npx.
 * `--no` keeps npx from fetching whatever the registry holds under our name.
 */
function quittanceCommand(): string {
  if (existsSync(new URL('src/', PACKAGE_ROOT))) return 'npm run quittance --';
  return PACKAGE_ROOT.href.includes('/node_modules/') ? 'npx --no quittance' : 'quittance';
}
