import { once } from 'node:events';
import { readTail, tailEvents } from '../../operator/deliveries/tail-events.ts';
import { printableJson } from '../../operator/input/printable.ts';
import { cliActor } from '../terminal/operator.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { withDatabase } from '../terminal/with-database.ts';
import { describeEvent } from './describe-event.ts';

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
      terminal.note('nothing new can come, because no service runs on this database: start it with "quittance start"');
    }
  });
}

/** Waits until a slow reader has read on, or nobody waits for it any more. */
async function drained(stdout: NodeJS.WritableStream, signal: AbortSignal): Promise<void> {
  await once(stdout, 'drain', { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}
