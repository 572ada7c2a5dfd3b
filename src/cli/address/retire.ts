import type { FieldProblem } from '../../domain/errors.ts';
import { readCandidates, refusedAddresses } from '../../operator/addresses/read-candidates.ts';
import { activateAddresses, retireAddresses } from '../../operator/addresses/retire-addresses.ts';
import { cliActor } from '../terminal/operator.ts';
import { readNote } from '../terminal/read-note.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';
import { withDatabase } from '../terminal/with-database.ts';
import { otherPolicyNote } from './other-policy-note.ts';
import { readAddresses } from './read-addresses.ts';

type Options = { project?: string | undefined; by?: string | undefined; note?: string | undefined };

async function readInput(terminal: Terminal, args: readonly string[], { project: projectId, by, note }: Options) {
  const actor = cliActor(terminal, by);
  const problems: FieldProblem[] = [];
  const text = readNote(note, problems);
  const { good: addresses, problems: wrong } = readCandidates(await readAddresses(args, undefined, terminal.stdin), []);
  problems.push(...wrong);
  if (problems.length > 0) throw refusedAddresses('no address was changed', problems);
  return { actor, input: { projectId, addresses, note: text || null } };
}

export async function printRetired(terminal: Terminal, args: readonly string[], options: Options): Promise<Result> {
  const { actor, input } = await readInput(terminal, args, options);
  const { view, projectPolicy } = await withDatabase(terminal, (deps) => retireAddresses(deps, actor, input));
  const notes = view.changed.length === 0 ? [] : ['they take no new invoices; payments to them are watched for ever'];
  if (view.activeAddresses[projectPolicy] === 0) {
    notes.push(
      `warning: no active address of the policy ${projectPolicy} is left, so every new invoice is refused (AMOUNT_UNAVAILABLE): add addresses, or activate one`,
    );
  }
  return present(view, 'retired', notes);
}

export async function printActivated(terminal: Terminal, args: readonly string[], options: Options): Promise<Result> {
  const { actor, input } = await readInput(terminal, args, options);
  const outcome = await withDatabase(terminal, (deps) => activateAddresses(deps, actor, input));
  const { view, projectPolicy, otherPolicy } = outcome;
  return present(view, 'activated', otherPolicyNote(view, otherPolicy ?? projectPolicy, projectPolicy));
}

type Switched = Awaited<ReturnType<typeof retireAddresses>>['view'];

function present(view: Switched, verb: string, notes: readonly string[]): Result {
  const lines = [
    ...view.changed.map((address) => `${verb} ${address}`),
    ...view.unchanged.map((address) => `${address} was ${view.status} before`),
  ];
  return { data: view, text: lines.join('\n'), ...(notes.length === 0 ? {} : { next: notes.join('\n') }) };
}
