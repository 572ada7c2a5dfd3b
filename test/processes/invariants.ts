import type pg from 'pg';
import { decodeId } from '../../src/core/domain/ids.ts';
import type { ChainTruth } from './chain-truth.ts';
import type { Acknowledged } from './customers.ts';

/** What to compare: the database, and the outside world's knowledge. */
export type World = {
  client: pg.Client;
  truth: ChainTruth;
  acknowledged: readonly Acknowledged[];
  receiver: {
    bodies: ReadonlyMap<string, string>;
    shipped: ReadonlyMap<string, number>;
    complaints: readonly string[];
  };
  /** Invoices that were seen PAID; grows with each check. */
  paid: Set<string>;
  /** Webhooks already compared with their events, which never change; grows with each check. */
  compared: Set<string>;
};

/** Finds broken promises, even while the service is working. Returns one line for each. */
export async function findViolations(world: World): Promise<string[]> {
  const found: string[] = [];
  for (const checker of Object.values(CHECKERS)) found.push(...(await checker(world)));
  return found;
}

/** Also checks everything that only holds when no work is left. */
export async function findViolationsAtRest(world: World): Promise<string[]> {
  return [...(await findViolations(world)), ...(await findUndelivered(world))];
}

/** One checker for each promise. */
export const CHECKERS = {
  acknowledgedIsThere: async ({ client, acknowledged: growing }: World) => {
    const acknowledged = [...growing];
    const { rows } = await client.query(
      'select id, external_id, idempotency_key, checkout_token, expires_at from invoices',
    );
    const byId = new Map(rows.map((row) => [row.id, row]));
    return acknowledged.flatMap(({ idempotencyKey, answer }) => {
      const row = byId.get(decodeId('inv', answer.invoiceId));
      const isSame =
        row !== undefined &&
        row.external_id === answer.externalId &&
        row.idempotency_key === idempotencyKey &&
        answer.checkoutUrl.endsWith(`/${row.checkout_token}`);
      return isSame ? [] : [`the acknowledged ${answer.externalId} is ${JSON.stringify(row)}`];
    });
  },

  paidIsNeverLeft: async ({ client, paid }: World) => {
    const { rows } = await client.query("select id from invoices where status = 'PAID'");
    const now = new Set(rows.map(({ id }) => id as string));
    const left = [...paid].filter((id) => !now.has(id));
    for (const id of now) paid.add(id);
    return left.map((id) => `invoice ${id} was PAID and is not`);
  },

  booksEqualChain: async ({ client, truth }: World) => {
    // A single statement, so that cursor and transfers are from the same moment.
    const { rows } = await client.query(`
      select c.solid_number::int as solid, encode(c.solid_id, 'hex') as id,
        array(select concat_ws(' ', block_number, encode(tx_id, 'hex'), log_index, amount_micro) from transfers) as recorded
      from chain_cursors c`);
    const [{ solid = 0, id = null, recorded = [] } = {}] = rows as {
      solid?: number;
      id?: string;
      recorded?: string[];
    }[];
    if (solid === 0) return [];
    await truth.readTo(solid);
    const ours = new Set(recorded);
    const onChain = new Set(truth.transfersUpTo(solid));
    return [
      ...[...onChain].filter((transfer) => !ours.has(transfer)).map((transfer) => `not recorded: ${transfer}`),
      ...[...ours]
        .filter((transfer) => !onChain.has(transfer))
        .map((transfer) => `recorded, and not on the chain: ${transfer}`),
      ...(truth.idOf(solid) === id ? [] : [`the cursor stands at ${solid} ${id}, which is not the chain's block`]),
    ];
  },

  paidByOneExactTransfer: ({ client }: World) =>
    linesOf(
      client,
      `select 'invoice ' || i.id || ' is ' || i.status || ' with ' || count(t.id) || ' matching transfers' as line
       from invoices i left join transfers t on t.invoice_id = i.id and t.kind = 'matched' and t.address_id = i.address_id
         and t.amount_micro = i.payable_micro
       group by i.project_id, i.id having count(t.id) <> (i.status = 'PAID')::int`,
    ),

  exactTransfersPay: ({ client }: World) =>
    linesOf(
      client,
      `select 'transfer ' || t.id || ' fits invoice ' || i.id || ' and is ' || t.kind as line
       from transfers t join invoices i on i.address_id = t.address_id and i.payable_micro = t.amount_micro
       where t.invoice_id is distinct from i.id`,
    ),

  sequencesHaveNoGap: ({ client }: World) =>
    linesOf(
      client,
      `select 'invoice ' || i.id || ' counts ' || i.event_count || ' events and has ' || count(e.id) || ' up to ' || coalesce(max(e.sequence), 0)
       as line from invoices i left join events e on e.project_id = i.project_id and e.invoice_id = i.id
       group by i.project_id, i.id having count(e.id) <> i.event_count or coalesce(max(e.sequence), 0) <> i.event_count
       union all
       select 'project ' || s.project_id || ' has ' || count(e.id) || ' events up to ' || max(e.position) || ' of ' || s.last_position
       from event_streams s left join events e on e.project_id = s.project_id
       group by s.project_id having count(e.id) <> s.last_position or max(e.position) <> s.last_position`,
    ),

  oneChangeIsOneEvent: ({ client }: World) =>
    linesOf(
      client,
      `select 'event ' || e.id || ' is ' || e.type || ' after ' || coalesce(e.before, 'nothing') || ', invoice ' || i.status as line
       from (select *, lag(type) over (partition by invoice_id order by sequence) as before from events) e
       join invoices i on i.project_id = e.project_id and i.id = e.invoice_id
       where e.type = e.before or e.before = 'invoice.paid'
         or (e.sequence = i.event_count and e.type <> 'invoice.' || lower(i.status))
       union all
       select 'transfer ' || t.id || ' is ' || t.kind || ' with ' || count(e.id) || ' events' from transfers t
       left join events e on e.transfer_id = t.id
       where not exists (select from untold_transfers u where u.transfer_id = t.id)
       group by t.id having count(e.id) <> 1
       union all
       select 'event ' || e.id || ' has ' || count(d.event_id) || ' deliveries' from events e
       left join deliveries d on d.event_id = e.id group by e.id having count(d.event_id) <> 1`,
    ),

  sightingsFitStatuses: ({ client }: World) =>
    linesOf(
      client,
      `select 'invoice ' || i.id || ' is ' || i.status || ' with ' || count(s.invoice_id) || ' sightings' as line
       from invoices i left join sightings s on s.project_id = i.project_id and s.invoice_id = i.id
       where i.status <> 'PAID'
       group by i.project_id, i.id having (i.status = 'CONFIRMING') <> (count(s.invoice_id) > 0)`,
    ),

  receiverActsOnce: async ({ client, receiver, compared }: World) => {
    // Reads the received webhooks first, because all of them must have been written before.
    const shipped = [...receiver.shipped];
    const unknown = [...receiver.bodies].filter(([id]) => !compared.has(id));
    const ids = unknown.map(([id]) => decodeId('evt', id));
    const { rows: events } = await client.query('select id, body from events where id = any($1::uuid[])', [ids]);
    const bodies = new Map(events.map(({ id, body }) => [id as string, body as string]));
    const { rows: invoices } = await client.query("select id from invoices where status = 'PAID'");
    const paid = new Set(invoices.map(({ id }) => id as string));
    for (const [id] of unknown) compared.add(id);
    return [
      ...receiver.complaints,
      ...shipped.flatMap(([id, times]) => (times === 1 ? [] : [`invoice ${id} was shipped ${times} times`])),
      ...shipped.flatMap(([id]) =>
        paid.has(decodeId('inv', id) ?? '') ? [] : [`invoice ${id} was shipped and is not PAID`],
      ),
      ...unknown.flatMap(([id, body]) =>
        bodies.get(decodeId('evt', id) ?? '') === body ? [] : [`webhook ${id} told what no event holds: ${body}`],
      ),
    ];
  },
} as const satisfies Record<string, (world: World) => Promise<string[]>>;

/** Checks that every event was delivered, and every paid invoice shipped. */
export async function findUndelivered({ client, receiver, paid }: World): Promise<string[]> {
  const { rows } = await client.query(
    'select e.body, e.type, d.status from events e join deliveries d on d.event_id = e.id',
  );
  const shipped = new Set([...receiver.shipped.keys()].map((id) => decodeId('inv', id)));
  return [
    ...rows.flatMap(({ body, type, status }) => {
      const { id } = JSON.parse(body) as { id: string };
      const isThere = status === 'delivered' && receiver.bodies.has(id);
      return isThere
        ? []
        : [`event ${id} (${type}) is ${status}, and ${receiver.bodies.has(id) ? '' : 'not '}received`];
    }),
    ...[...paid].flatMap((id) => (shipped.has(id) ? [] : [`invoice ${id} is PAID and was not shipped`])),
  ];
}

async function linesOf(client: pg.Client, sql: string): Promise<string[]> {
  return (await client.query(sql)).rows.map(({ line }) => line as string);
}
