import { AppError } from '../../domain/errors.ts';
import { decodeId } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import type { Sql } from '../../store/db/database.ts';
import { type Actor, maySee } from '../actor.ts';
import { clip } from '../input/clip.ts';
import { type DeskEvent, findDeskEvents } from './delivery-desk.ts';

/** The UUID behind an `evt_…`. Errors: `INVALID_ARGUMENT`. */
export function readEventId(eventId: string): string {
  const uuid = decodeId('evt', eventId);
  if (uuid !== null) return uuid;
  throw new AppError(
    'INVALID_ARGUMENT',
    say`${clip(eventId)} is not an event id: it is "evt_" and 26 characters, as webhooks and "${{ command: 'deliveries list' }}" show it`,
  );
}

/** The event with this `evt_…`. Errors: `INVALID_ARGUMENT`, `NOT_FOUND`. */
export async function selectEvent(db: Sql, actor: Actor, eventId: string): Promise<DeskEvent> {
  const [event] = await findDeskEvents(db, [readEventId(eventId)]);
  if (event !== undefined && maySee(actor, event.projectId)) return event;
  throw new AppError(
    'NOT_FOUND',
    say`there is no event ${eventId}: "${{ command: 'deliveries list' }}" shows those there are`,
  );
}
