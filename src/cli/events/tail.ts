import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { EVENT_TYPES } from '../../domain/event.ts';
import { decodeId } from '../../domain/ids.ts';
import type { Sql } from '../../store/database.ts';
import {
  findEventPosition,
  findEventsAfter,
  findLastPosition,
  findNewestEvents,
  type TailedEvent,
} from '../../store/event-tail.ts';
import { CliError } from '../cli-error.ts';
import { clip } from '../clip.ts';
import type { ProjectOption } from '../option-parts.ts';
import { selectProject } from '../select-project.ts';
import { printableJson, type Terminal } from '../terminal.ts';
import { withDatabase } from '../with-database.ts';
import { describeEvent } from './describe-event.ts';

export type TailOptions = ProjectOption & { type?: string[]; limit: string; after?: string; follow: boolean };

/** What ends the following, and how soon a new event is seen. */
export type Following = { signal: AbortSignal; pollMs?: number };

const MAX_LIMIT = 1000;
/** Events read at once: two megabytes at most. */
const BATCH = 100;
const POLL_MS = 1000;

/**
 * Shows events of a project, one a line, and goes on with each that is committed until `signal` aborts. None is left out, none
 * comes twice. Programs get the bodies as they are stored; in a terminal what could rewrite it is escaped.
 */
export async function tailEvents(
  terminal: Terminal,
  options: TailOptions,
  { signal, pollMs = POLL_MS }: Following,
): Promise<void> {
  const { stdout } = terminal;
  const types = readTypes(options.type);
  const limit = readLimit(options.limit);
  const after = readAfter(options.after);
  const toLine = terminal.json ? (stdout.isTTY === true ? printableJson : (body: string) => body) : describeEvent;
  const show = async (events: TailedEvent[]) => {
    const shown = types === null ? events : events.filter(({ type }) => types.includes(type));
    const lines = shown.map(({ body }) => `${toLine(body)}\n`);
    if (lines.length > 0 && !stdout.write(lines.join(''))) await drained(stdout, signal);
  };
  await withDatabase(terminal, async ({ db, isStartedHere }) => {
    const project = await selectProject(db, options.project);
    let position: bigint;
    if (after === null) {
      const last = await findLastPosition(db, project.id);
      const newest = limit === 0 ? [] : await findNewestEvents(db, project.id, { types, limit });
      await show(newest);
      // The last may be of no type that is shown, and some may have come since.
      position = [last, ...newest.map((event) => event.position)].reduce((a, b) => (a > b ? a : b));
    } else {
      position = await positionOf(db, project.id, after);
    }
    while (!signal.aborted) {
      const events = await findEventsAfter(db, project.id, position, BATCH);
      await show(events);
      position = events.at(-1)?.position ?? position;
      if (events.length === BATCH) continue;
      // In a database of the command's own nobody writes, and every other command would wait.
      if (!options.follow || isStartedHere) break;
      await delay(pollMs, undefined, { signal }).catch(() => undefined);
    }
    if (options.follow && isStartedHere) {
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

function readTypes(types: string[] | undefined): string[] | null {
  const unknown = types?.find((type) => !EVENT_TYPES.some((known) => known === type));
  if (unknown !== undefined) {
    throw new CliError('INVALID_ARGUMENT', `--type ${clip(unknown)} is no event: there are ${EVENT_TYPES.join(', ')}`);
  }
  return types ?? null;
}

function readLimit(text: string): number {
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : -1;
  if (limit >= 0 && limit <= MAX_LIMIT) return limit;
  throw new CliError('INVALID_ARGUMENT', `--limit is ${clip(text)}: it takes 0 to ${MAX_LIMIT}`);
}

type EventReference = { id: string; uuid: string };

function readAfter(id: string | undefined): EventReference | null {
  if (id === undefined) return null;
  const uuid = decodeId('evt', id);
  if (uuid !== null) return { id, uuid };
  throw new CliError('INVALID_ARGUMENT', `--after ${clip(id)} is no event id: it is "evt_" and 26 characters`);
}

async function positionOf(db: Sql, projectId: string, { id, uuid }: EventReference): Promise<bigint> {
  const position = await findEventPosition(db, projectId, uuid);
  if (position !== null) return position;
  throw new CliError('NOT_FOUND', `there is no event ${id} in this project`);
}
