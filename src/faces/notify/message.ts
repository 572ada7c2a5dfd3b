import { createHash } from 'node:crypto';
import { encodeId } from '../../core/domain/ids.ts';
import type { Notification } from '../../core/store/outbox/notifications.ts';

/**
 * A message is a notification, or a digest of several. A retry has the same `id`, and a message with different content has a different one.
 */
export type Message = {
  id: string;
  title: string;
  text: string;
  isUrgent: boolean;
  items: readonly { about: string; phase: Notification['phase'] | 'test'; title: string }[];
};

/** The installation that sends the message. `name` is the host of its payers' pages. A field is `null` if it isn't configured. */
export type Installation = { name: string | null; consoleUrl: string | null };

/** Replaces text that someone else has written to the outbox. */
const MADE_UP =
  'Quittance did not write this message: someone inserted it directly into the database. See "row-changed" in docs/reference/alarms.md';
/** A digest lists this many notifications and counts all others. */
const MAX_NAMED = 20;

/** Composes one message from one or more notifications. It contains the name of the installation and a link to its console. */
export function composeNotification(rows: readonly Notification[], installation: Installation): Message {
  const { name, consoleUrl } = installation;
  const { title, text, ...message } = composeWords(rows);
  const [only] = rows.length === 1 ? rows : [];
  const link =
    consoleUrl === null ? '' : `\n\nIn the console: ${consoleUrl}${only === undefined ? '/' : pageOf(only.about)}`;
  return { ...message, title: name === null ? title : `${name}: ${title}`, text: text + link };
}

/** Returns the console page about `alarm:…`, `transfer:…`, `owner:…` or `summary:…`. Ids are UUIDs. */
function pageOf(about: string): string {
  const [subject, id = ''] = about.split(':');
  if (subject === 'transfer' && UUID.test(id)) return `/unmatched/${encodeId('trf', id)}`;
  return { alarm: '/chain', owner: '/settings/people' }[subject ?? ''] ?? '/';
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function composeWords(rows: readonly Notification[]): Message {
  const [first] = rows;
  if (first === undefined) throw new RangeError('a message needs at least one notification');
  const titles = rows.map(({ seal, title }) => (seal ? title : 'Message not written by Quittance'));
  const items = rows.map(({ about, phase }, index) => ({ about, phase, title: titles[index] ?? '' }));
  const isUrgent = rows.some((row) => row.isUrgent);
  if (rows.length === 1)
    return { id: first.id, title: titles[0] ?? '', text: first.seal ? first.body : MADE_UP, isUrgent, items };
  const more = rows.length - MAX_NAMED;
  const lines = titles.slice(0, MAX_NAMED).map((title) => `- ${title}`);
  const rest = more > 0 ? [`… and ${more} more`] : [];
  const text = [...lines, ...rest, '', 'To see all open alarms: quittance chain status'].join('\n');
  return { id: idOfDigest(rows), title: `Quittance: ${rows.length} notifications`, text, isUrgent, items };
}

/** Derives a UUID from all ids. The UUID contains the timestamp of the first id. */
function idOfDigest(rows: readonly Notification[]): string {
  const ids = rows.map(({ id }) => id).sort();
  const hash = createHash('sha256').update(ids.join()).digest('hex');
  return `${ids[0]?.slice(0, 15)}${hash.slice(0, 3)}-8${hash.slice(3, 6)}-${hash.slice(6, 18)}`;
}

/** Shortens a text to a number of characters, without splitting a character. */
export function clipText(text: string, max: number): string {
  const characters = [...text];
  return characters.length <= max ? text : `${characters.slice(0, max - 1).join('')}…`;
}

/** Turns a text into one line without control characters. */
export function oneLine(text: string, max: number): string {
  return clipText(text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ').trim(), max);
}
