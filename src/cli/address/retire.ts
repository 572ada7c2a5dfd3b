import { activateAddressesOperation, retireAddressesOperation } from '../../operator/addresses/operations.ts';
import type { SwitchedAddressesView } from '../../operator/addresses/views.ts';
import { runOperation } from '../terminal/run-operation.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';
import { otherPolicyNote } from './other-policy-note.ts';
import { readAddresses } from './read-addresses.ts';

type Options = { project?: string | undefined; by?: string | undefined; note?: string | undefined };

async function readInput({ stdin }: Terminal, args: readonly string[], { project: projectId, note }: Options) {
  return { projectId, entries: await readAddresses(args, undefined, stdin), note };
}

export async function printRetired(terminal: Terminal, args: readonly string[], options: Options): Promise<Result> {
  const input = await readInput(terminal, args, options);
  const { view, projectPolicy } = await runOperation(terminal, retireAddressesOperation, input, { by: options.by });
  const notes = view.changed.length === 0 ? [] : ['they take no new invoices; payments to them are watched for ever'];
  if (view.activeAddresses[projectPolicy] === 0) {
    notes.push(
      `warning: no active address of the policy ${projectPolicy} is left, so every new invoice is refused (AMOUNT_UNAVAILABLE): add addresses, or activate one`,
    );
  }
  return present(view, 'retired', notes);
}

export async function printActivated(terminal: Terminal, args: readonly string[], options: Options): Promise<Result> {
  const input = await readInput(terminal, args, options);
  const outcome = await runOperation(terminal, activateAddressesOperation, input, { by: options.by });
  const { view, projectPolicy, otherPolicy } = outcome;
  return present(view, 'activated', otherPolicyNote(view, otherPolicy ?? projectPolicy, projectPolicy));
}

function present(view: SwitchedAddressesView, verb: string, notes: readonly string[]): Result {
  const lines = [
    ...view.changed.map((address) => `${verb} ${address}`),
    ...view.unchanged.map((address) => `${address} was ${view.status} before`),
  ];
  return { data: view, text: lines.join('\n'), ...(notes.length === 0 ? {} : { next: notes.join('\n') }) };
}
