import { encodeId } from '../../domain/ids.ts';
import { activateAddresses, retireAddresses, type Switched } from '../../payments/retire-addresses.ts';
import type { Problem } from '../cli-error.ts';
import { readOperator } from '../operator.ts';
import { readNote } from '../read-note.ts';
import { selectProject } from '../select-project.ts';
import type { Result, Terminal } from '../terminal.ts';
import { withDatabase } from '../with-database.ts';
import { operating, otherPolicyNote } from './add.ts';
import { readCandidates, refusedAddresses } from './candidates.ts';
import { readAddresses } from './read-addresses.ts';

export type RetireAddressOptions = { project?: string; by?: string; note?: string };

/** Takes addresses out of use: they get no new invoices and are watched for ever. All of them or none; may be repeated. */
export function retireProjectAddresses(
  terminal: Terminal,
  args: string[],
  options: RetireAddressOptions,
): Promise<Result> {
  return switchProjectAddresses(terminal, args, options, 'retired');
}

/** Takes retired addresses into use again. All of them or none; may be repeated. */
export function activateProjectAddresses(
  terminal: Terminal,
  args: string[],
  options: RetireAddressOptions,
): Promise<Result> {
  return switchProjectAddresses(terminal, args, options, 'active');
}

async function switchProjectAddresses(
  terminal: Terminal,
  args: string[],
  options: RetireAddressOptions,
  to: 'retired' | 'active',
): Promise<Result> {
  const operator = readOperator(options.by, terminal.env);
  const noteProblems: Problem[] = [];
  const note = readNote(options.note, noteProblems);
  const { good, problems: wrong } = readCandidates(await readAddresses(args, undefined, terminal.stdin), []);
  const problems = [...noteProblems, ...wrong];
  if (problems.length > 0) throw refusedAddresses('no address was changed', problems);
  return withDatabase(terminal, async ({ db }) => {
    const project = await selectProject(db, options.project);
    const change = to === 'retired' ? retireAddresses : activateAddresses;
    const outcome = await change(operating(db, operator), {
      projectId: project.id,
      addresses: good,
      note: note || null,
    });
    if (outcome.kind === 'unknown') {
      const unknown = outcome.unknown.map(({ address }) => {
        return {
          subject: address,
          message: `${address} is not in this project: "quittance address list" shows those that are`,
        };
      });
      throw refusedAddresses('no address was changed', unknown, 'NOT_FOUND');
    }
    if (outcome.kind === 'barred') {
      const barred = outcome.barred.map(({ address }) => {
        return {
          subject: address,
          message: `${address} was in use before a backup was restored: payers may hold amounts of it that are not known here, so it never gets a new invoice. Add another one (docs/backup.md)`,
        };
      });
      throw refusedAddresses('no address was changed', barred, 'CONFLICT');
    }
    const changed = outcome.changed.map(({ address }) => address);
    const unchanged = outcome.unchanged.map(({ address }) => address);
    const next = notesOn(outcome, to);
    return {
      data: {
        projectId: encodeId('prj', project.id),
        status: to,
        changed,
        unchanged,
        activeAddresses: outcome.counts.active,
      },
      text: [
        ...changed.map((address) => `${to === 'retired' ? 'retired' : 'activated'} ${address}`),
        ...unchanged.map((address) => `${address} was ${to} before`),
      ].join('\n'),
      ...(next.length === 0 ? {} : { next: next.join('\n') }),
    };
  });
}

function notesOn(
  { project, changed, counts }: Extract<Switched, { kind: 'done' }>,
  to: 'retired' | 'active',
): string[] {
  if (to === 'active') {
    const other = changed.find(({ policy }) => policy !== project.policy);
    return other === undefined ? [] : otherPolicyNote(other.policy, project);
  }
  const notes = changed.length === 0 ? [] : ['they take no new invoices; payments to them are watched for ever'];
  if (counts.active[project.policy] > 0) return notes;
  return [
    ...notes,
    `warning: no active address of the policy ${project.policy} is left, so every new invoice is refused (AMOUNT_UNAVAILABLE): add addresses, or activate one`,
  ];
}
