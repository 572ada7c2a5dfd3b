import type { Scenario } from '../devnet/scenarios.ts';
import { CliError } from './cli-error.ts';
import { loadConfig } from './load-config.ts';
import type { Terminal } from './terminal.ts';

/** Pays an invoice of the sandbox that runs on this data directory. */
export async function paySandboxInvoice(
  terminal: Terminal,
  target: string,
  options: { scenario: Scenario; with?: string },
): Promise<void> {
  const { scenario, with: withInvoice } = options;
  if (scenario !== 'two-in-one' && withInvoice !== undefined) {
    throw new CliError('INVALID_ARGUMENT', `--with goes with --scenario two-in-one only, not with ${scenario}`);
  }
  const { dataDir } = loadConfig(terminal);
  const { sandboxPay } = await import('./sandbox/pay.ts');
  await sandboxPay(terminal, { dataDir, target, scenario, withInvoice: withInvoice ?? null });
}
