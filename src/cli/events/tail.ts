import { once } from 'node:events';
import { EVENT_TYPE_WIDTH } from '../../core/domain/event.ts';
import { printable, printableJson } from '../../faces/operator/input/problems.ts';
import { readTail, tailEvents } from '../../faces/operator/subjects/events.ts';
import { cliActor, type Terminal } from '../terminal/terminal.ts';
import { withDatabase } from '../terminal/with-database.ts';

export type TailOptions = { project?: string | undefined; follow: boolean } & Parameters<typeof readTail>[0];

/**
 * Prints a project's events, one on each line, and with `follow` each new one until `signal` aborts. Programs get the bodies as they are
 * stored. In a terminal, control characters are escaped. `pollMs` is how often the command checks for new events.
 */
export async function printEvents(
  terminal: Terminal,
  { project: projectId, follow, ...input }: TailOptions,
  { signal, pollMs }: { signal: AbortSignal; pollMs?: number },
): Promise<void> {
  const { stdout } = terminal;
  const wanted = { ...readTail(input), projectId };
  const toLine = terminal.json ? (stdout.isTTY === true ? printableJson : (body: string) => body) : describeEvent;
  await withDatabase(terminal, async ({ db, isStartedHere }) => {
    // No one else writes to a database that the command started for itself, and all other commands would have to wait.
    const asked = { ...wanted, follow: follow && !isStartedHere };
    for await (const bodies of tailEvents({ db, signal, pollMs }, cliActor(terminal), asked)) {
      const lines = bodies.map((body) => `${toLine(body)}\n`);
      if (lines.length > 0 && !stdout.write(lines.join(''))) await drained(stdout, signal);
    }
    if (follow && isStartedHere) {
      terminal.note(
        'no new events can arrive, because no service is running on this database: start it with "quittance start"',
      );
    }
  });
}

/** Waits until a slow reader catches up, or `signal` aborts. */
async function drained(stdout: NodeJS.WritableStream, signal: AbortSignal): Promise<void> {
  await once(stdout, 'drain', { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}

/** The members of an event's body that are shown on its line. The event's type determines which of them `data` contains. */
type EventText = Record<'id' | 'type' | 'timestamp', string> & {
  data: { [Name in (typeof SHOWN)[number]]?: string } & { payment?: { payableAmount: string } };
};
const SHOWN = ['transferId', 'invoiceId', 'endpointId', 'status', 'amount', 'externalId', 'reason'] as const;

/**
 * Returns an event as one line: time (UTC), type, id, and subject. `2026-11-21 02:42:35  invoice.paid        evt_01m7…  inv_01m7…  PAID
 * 25.000137  order-1001`
 */
function describeEvent(body: string): string {
  const { id, type, timestamp, data } = JSON.parse(body) as EventText;
  const shown = { ...data, amount: data.payment?.payableAmount ?? data.amount };
  const subjects = SHOWN.map((name) => shown[name]);
  const time = timestamp.slice(0, 19).replace('T', ' ');
  const parts = [time, type.padEnd(EVENT_TYPE_WIDTH), id, ...subjects.filter((part) => part !== undefined)];
  return printable(parts.join('  ').trimEnd());
}
