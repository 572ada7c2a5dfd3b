import { ALARM_KINDS, type AlarmKind, resolveAlarms } from '../store/alarms.ts';
import { CliError } from './cli-error.ts';
import { clip } from './clip.ts';
import { selectNetwork } from './select-network.ts';
import type { Result, Terminal } from './terminal.ts';
import { withDatabase } from './with-database.ts';

export type AcknowledgeOptions = { alarm: string; subject?: string; network?: string };

/** What happened once is over when an operator has read it. Every other alarm ends when its cause does. */
const CLOSED_BY_OPERATORS: readonly AlarmKind[] = [
  'contract-event',
  'unproven-block',
  'payment-denied',
  'database-restored',
];

/** Closes the alarms of a kind, or one of them, that an operator has read and that nothing else would ever close. */
export async function acknowledgeAlarms(terminal: Terminal, options: AcknowledgeOptions): Promise<Result> {
  const kind = readKind(options.alarm);
  return withDatabase(terminal, async ({ db, config }) => {
    const network = selectNetwork(config, options.network);
    const subject = options.subject ?? null;
    const count = await resolveAlarms(db, network, kind, subject);
    if (count === 0) {
      const about = subject === null ? '' : ` about ${clip(subject)}`;
      throw new CliError(
        'NOT_FOUND',
        `${network} has no open alarm ${kind}${about}: see "quittance chain status --json"`,
      );
    }
    return {
      data: { network, kind, subject, closed: count },
      text: `closed ${count} ${count === 1 ? 'alarm' : 'alarms'} ${kind} of ${network}`,
    };
  });
}

function readKind(text: string): AlarmKind {
  const kind = ALARM_KINDS.find((known) => known === text);
  const choices = CLOSED_BY_OPERATORS.join(', ');
  if (kind === undefined) {
    throw new CliError('INVALID_ARGUMENT', `--alarm ${clip(text)} is no kind of alarm: it takes ${choices}`);
  }
  if (CLOSED_BY_OPERATORS.includes(kind)) return kind;
  throw new CliError(
    'INVALID_ARGUMENT',
    `the alarm ${kind} ends by itself when its cause does: --alarm takes ${choices}`,
  );
}
