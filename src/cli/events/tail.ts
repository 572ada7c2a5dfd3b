import { once } from 'node:events';
import { EVENT_TYPE_WIDTH } from '../../domain/event.ts';
import { printable, printableJson } from '../../operator/input/problems.ts';
import { readTail, tailEvents } from '../../operator/subjects/events.ts';
import { cliActor, type Terminal } from '../terminal/terminal.ts';

import { withDatabase } from '../terminal/with-database.ts';

export type TailOptions = { project?: string | undefined; follow: boolean } & Parameters<typeof readTail>[0];

/**
 * Shows events of a project, one a line, and goes on with each that is committed until `signal` aborts. Programs get the bodies as they
 * are stored; in a terminal what could rewrite it is escaped. `pollMs`: how soon a new event is seen.
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
    // In a database of the command's own nobody writes, and every other command would wait.
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

/** Waits until a slow reader has read on, or nobody waits for it any more. */
async function drained(stdout: NodeJS.WritableStream, signal: AbortSignal): Promise<void> {
  await once(stdout, 'drain', { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}

/** The members of an event's body that a line shows; which of them `data` has depends on the type. */
type EventText = {
  id: string;
  type: string;
  timestamp: string;
  data: {
    invoiceId?: string;
    externalId?: string;
    status?: string;
    payment?: { payableAmount: string };
    transferId?: string;
    amount?: string;
    endpointId?: string;
    reason?: string;
  };
};

/**
 * The stored body of an event in one line: time (UTC), type, id, and what it is about.
 * `2026-11-21 02:42:35  invoice.paid        evt_01m7…  inv_01m7…  PAID  25.000137  order-1001`
 */
function describeEvent(body: string): string {
  const { id, type, timestamp, data } = JSON.parse(body) as EventText;
  const { transferId, invoiceId, endpointId, status, payment, amount, externalId, reason } = data;
  const subjects = [transferId, invoiceId, endpointId, status, payment?.payableAmount ?? amount, externalId, reason];
  const time = timestamp.slice(0, 19).replace('T', ' ');
  const parts = [time, type.padEnd(EVENT_TYPE_WIDTH), id, ...subjects.filter((part) => part !== undefined)];
  return printable(parts.join('  ').trimEnd());
}
