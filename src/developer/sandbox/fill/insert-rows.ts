import type { Sql } from '../../../core/store/db/database.ts';
import { answerOf, commandOf } from '../../../core/store/db/rows-of.ts';
import { type SealedTable, type Sealer, snakeCase } from '../../../core/store/db/seal.ts';
import {
  SEALED_ADDRESS,
  SEALED_EVENT,
  SEALED_INVOICE,
  SEALED_OUTGOING,
  SEALED_PAID,
  SEALED_RESOLUTION,
  SEALED_STATUS,
  SEALED_TRANSFER,
} from '../../../core/store/db/sealed-tables.ts';
import { count } from '../../../core/store/db/statement.ts';

/**
 * Each table comes after the tables that it refers to. Only invoices refer to later tables, which is checked at the end of the transaction.
 */
const COLUMNS = {
  addresses: 'id, project_id, network, account, address, policy, position, created_at, mac',
  invoices: `id, project_id, network, address_id, idempotency_key, external_id, requested_micro, payable_micro, status, checkout_token,
    created_at, expires_at, event_count, paid_transfer_id, mac, paid_mac`,
  transfers: `id, project_id, network, address_id, tx_id, log_index, block_number, block_id, block_time, from_address, amount_micro, kind,
    invoice_id, reserved_micro, producer, verified, nodes, recorded_at, correction, mac`,
  outgoingTransfers: `network, tx_id, log_index, project_id, address_id, block_number, block_id, block_time, to_address, amount_micro,
    verified, nodes, recorded_at, correction, mac`,
  events: 'id, project_id, network, type, invoice_id, transfer_id, sequence, body, created_at, position, mac',
  deliveries: `event_id, endpoint_id, project_id, invoice_id, sequence, status, attempt_count, max_attempts, next_attempt_at, created_at,
    finished_at, last_status, last_error`,
  deliveryAttempts: 'event_id, endpoint_id, attempt, attempted_at, status, error, latency_ms',
  transferResolutions:
    'project_id, transfer_id, resolution, note, invoice_id, resolved_by, resolved_at, event_id, is_untold, mac',
} as const;

type FilledTable = keyof typeof COLUMNS;
const TABLES = Object.keys(COLUMNS) as FilledTable[];
/** A row by column name; bytes are written as `\x` and hex. */
type FilledRow = Record<string, string | number | boolean | null | readonly string[]>;
export type FilledRows = { [Table in FilledTable]: FilledRow[] };

const insertInto = (table: FilledTable) => {
  const sqlName = snakeCase(table);
  return commandOf(
    `fill-${sqlName.replaceAll('_', '-')}`,
    `insert into ${sqlName} (${COLUMNS[table]})
     select ${COLUMNS[table]} from jsonb_populate_recordset(null::${sqlName}, $1::text::jsonb)`,
    (rows: readonly FilledRow[]) => [JSON.stringify(rows)],
  );
};

const INSERTS = TABLES.map((table) => [table, insertInto(table)] as const);

export function noRows(): FilledRows {
  return Object.fromEntries(TABLES.map((table): [FilledTable, FilledRow[]] => [table, []])) as FilledRows;
}

const SEALS: Partial<Record<FilledTable, readonly SealedTable[]>> = {
  addresses: [SEALED_ADDRESS],
  invoices: [SEALED_INVOICE, SEALED_PAID, SEALED_STATUS],
  transfers: [SEALED_TRANSFER],
  outgoingTransfers: [SEALED_OUTGOING],
  events: [SEALED_EVENT],
  transferResolutions: [SEALED_RESOLUTION],
};

/** Inserts a project's rows. All constraints, triggers and seals apply as usual. */
export async function insertRows(tx: Sql, rows: FilledRows): Promise<void> {
  const sealer = await tx.sealer();
  for (const [table, insert] of INSERTS) {
    const seals = sealer === null ? [] : (SEALS[table] ?? []);
    const sealed = rows[table].map((row) => Object.assign({}, row, ...seals.map((seal) => macOf(sealer, seal, row))));
    if (sealed.length > 0) await insert(tx, sealed);
  }
}

/** Returns the column that holds the row's MAC. Deadlines on a local network aren't sealed. */
function macOf(sealer: Sealer | null, table: SealedTable, row: FilledRow): FilledRow {
  if (sealer === null || !isNeeded(table, row)) return {};
  const values = Object.entries(table.fields).map(([name, type]) => {
    const value = row[snakeCase(name)] ?? null;
    if (value === null || type === 'deadline') return [name, null];
    if (type === 'timestamptz') return [name, Date.parse(String(value))];
    return [name, type === 'bytea' ? String(value).slice('\\x'.length) : value];
  });
  return { [table.mac]: `\\x${sealer.seal(table, Object.fromEntries(values)).toString('hex')}` };
}

function isNeeded(table: SealedTable, { status, event_count: eventCount }: FilledRow): boolean {
  if (table === SEALED_PAID) return status === 'PAID';
  return table !== SEALED_STATUS || (status !== 'PAID' && (status !== 'PENDING' || Number(eventCount ?? 0) > 0));
}

/** Reserves the next positions of a project's events, and returns the last one. */
export const takePositions = answerOf(
  'fill-take-positions',
  { lastPosition: count },
  `insert into event_streams as s (project_id, last_position) values ($1, $2)
   on conflict (project_id) do update set last_position = s.last_position + excluded.last_position returning last_position`,
  (projectId: string, positions: number) => [projectId, positions],
  ([row]) => row?.lastPosition ?? 0,
);
