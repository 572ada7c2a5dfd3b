import { createHash } from 'node:crypto';
import { encodeId, NIL_UUID, uuidV7 } from '../../domain/ids.ts';
import { findActionsSince, findAuditHead, type RecordedAction } from '../../store/access/audit-log.ts';
import type { Sql } from '../../store/db/database.ts';
import { findInventoryPage, insertInventoryPage, updateInventoryPage } from '../../store/ledger/inventory.ts';
import { SETTING_TABLES } from '../../store/ledger/settings-rows.ts';
import { type AccountHex, accountToAddress } from '../../tron/address.ts';
import { tellCutOff, tellUnexplained } from './inventory-alarms.ts';
import type { Keeping } from './keeping.ts';

/** `audit`: the last entry of the audit log then. `rows`: a digest of the state of each, by `TABLE:ID`. */
type Settings = { audit: number; rows: Record<string, string> };
/** `name`: as the audit log calls it. `digest`: `null` where the row is not as it was sealed, so that it stands for nothing. `besides`: as of its table. */
type Found = { table: string; id: string; name: string; digest: string | null; besides: readonly RecordedAction[] };

const PAGE = 1;
const OF_ALL_ROWS: readonly RecordedAction[] = [
  'ledger.sealed',
  'master-key.rotated',
  'backup.restored',
  'backup.accepted',
];
const NOTHING: Settings = { audit: 0, rows: {} };

/**
 * Compares projects, keys, endpoints and addresses with how they stood before: each one that is not as it was must be named by an action in the
 * audit log since. A new one needs none, for it is sealed. What is not explained stays on the page as it was, and is told again.
 */
export async function compareSettings(keeping: Keeping): Promise<void> {
  const { db, network, now, random } = keeping;
  const seen = keeping.seen.get('settings')?.number ?? 0;
  const { page, found, head, done, before } = await db.snapshot(async (tx) => {
    const stored = await findInventoryPage(tx, network, 'settings', PAGE);
    const rows = await readSettings(tx, keeping);
    const settings = stored?.seal === true ? readPage(stored.content) : NOTHING;
    const asked = settings.audit < seen ? [...rows.values()] : differences(settings, rows);
    const names = asked.flatMap(({ table, id, name }) => [`${table}:${id}`, name]);
    const since = names.length === 0 ? [] : await findActionsSince(tx, settings.audit, names, OF_ALL_ROWS);
    const last = (await findAuditHead(tx))?.seq ?? 0;
    return { page: stored, found: rows, head: last, done: since, before: settings };
  });
  if (page !== null && !page.seal) return;
  if (before.audit < seen) {
    await tellCutOff(keeping, 'settings');
    await tellPutBack(keeping, before, found, done);
  }
  keeping.seen.set('settings', { number: head, bytes: 0 });
  const after: Settings = { audit: head, rows: {} };
  for (const [key, { digest }] of found) {
    const kept = digest ?? before.rows[key];
    if (kept !== undefined) after.rows[key] = kept;
  }
  for (const { key, table, id, name, was, isGone, besides } of differences(before, found)) {
    if (done.some((action) => isAbout({ table, id, name, besides }, action) || OF_ALL_ROWS.includes(action.action)))
      continue;
    after.rows[key] = was;
    await tellUnexplained(keeping, { table, id, name, isGone });
  }
  const content = Buffer.from(JSON.stringify(after));
  const written = { network, subject: 'settings', number: PAGE, content } as const;
  if (page === null) await insertInventoryPage(db, { ...written, id: uuidV7(now(), random(10)) });
  else if (!content.equals(page.content)) await updateInventoryPage(db, { ...written, id: page.id }, page.content);
}

type Done = Awaited<ReturnType<typeof findActionsSince>>[number];

function isAbout({ table, id, name, besides }: Omit<Found, 'digest'>, { action, subject }: Done): boolean {
  return (subject === name && !besides.includes(action)) || subject === `${table}:${id}`;
}

/** The page was put back: so was a row that stands as on it, though it was changed since. */
async function tellPutBack(
  keeping: Keeping,
  before: Settings,
  found: ReadonlyMap<string, Found>,
  done: readonly Done[],
): Promise<void> {
  for (const [key, row] of found) {
    const isAsBefore = row.digest !== null && before.rows[key] === row.digest;
    if (!isAsBefore || !done.some((action) => isAbout(row, action))) continue;
    await tellUnexplained(keeping, { ...row, isGone: false });
  }
}

/** Where seals only warn, somebody may have put there what is no page: that is an alarm already, and it is written anew. */
function readPage(content: Buffer): Settings {
  try {
    const { audit, rows } = JSON.parse(content.toString()) as Partial<Settings>;
    if (typeof audit === 'number' && typeof rows === 'object' && rows !== null) return { audit, rows };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  return NOTHING;
}

async function readSettings(tx: Sql, { network }: Keeping): Promise<Map<string, Found>> {
  const found = new Map<string, Found>();
  for (const { table, part, prefix, besides, read } of SETTING_TABLES) {
    for (let after: string | undefined = NIL_UUID; after !== undefined; ) {
      const rows = await read(tx, network, after);
      for (const { id, ownerId, account, state, seal } of rows) {
        const digest = seal === false ? null : createHash('sha256').update(state).digest('hex').slice(0, 32);
        const row = `${table}:${id}`;
        const text = account === null ? row : accountToAddress(account as AccountHex);
        found.set(part === '' ? row : `${row}:${part}`, {
          table,
          id,
          digest,
          besides,
          name: prefix === null ? text : encodeId(prefix, ownerId),
        });
      }
      after = rows.at(-1)?.id;
    }
  }
  return found;
}

/** The rows that are gone, or stand otherwise than before. */
function differences(before: Settings, found: ReadonlyMap<string, Found>) {
  return Object.entries(before.rows).flatMap(([key, was]) => {
    const row = found.get(key);
    if (row?.digest === null || row?.digest === was) return [];
    const [table = '', id = ''] = key.split(':');
    return [{ key, table, id, was, name: row?.name ?? key, besides: row?.besides ?? [], isGone: row === undefined }];
  });
}
