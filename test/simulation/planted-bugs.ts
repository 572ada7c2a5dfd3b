import type { SignedHeaders, signWebhook } from '../../src/core/webhooks/sign.ts';
import type { Plant } from './engine/simulated-database.ts';

/** A mistake in code outside SQL; the test replaces the correct code by it. */
export type CodeBug = {
  /** Every verified block counts as irreversible. */
  isEveryBlockSolid?: true;
  /** A block with bytes that JSON hides counts as contradictory. */
  isHiddenUnverifiable?: true;
  /** Signs differently; `sign` is the correct function. */
  signs?(sign: typeof signWebhook, message: Parameters<typeof signWebhook>[0]): SignedHeaders;
};

/** A mistake that a developer could make, and the invariant that it violates. */
export type PlantedBug = {
  number: number;
  /** Bugs of one day share a world, because they don't interfere with each other and a world costs more than a day in it. */
  day: number;
  bug: string;
  /** Matches the violation of that invariant. */
  found: RegExp;
  plant?: Plant;
  code?: CodeBug;
  /** A protection in the database that a developer who makes this mistake would have to remove too. */
  without?: string;
  /** The node lies as well. */
  lie?: 'solid-ahead';
};

/** At least one for each invariant. */
export const PLANTED_BUGS: readonly PlantedBug[] = [
  {
    number: 1,
    day: 1,
    bug: 'every invoice of an amount gets the same code word',
    found: /micro-USDT to .* are of \d invoices/,
    plant: rewriting('invoice-insert', [
      [
        'select word, mac from unnest(m.words::int8[], m.macs::text[]) as offered (word, mac)',
        'select m.requested_micro + 9 as word, null::text as mac',
      ],
      [
        /where \(select i\.address_id from invoices i where i\.address_id = m\.address_id[^$]*? is null limit 1\) w/,
        'limit 1) w',
      ],
    ]),
    without: 'alter table public.invoices drop constraint invoices_reservation',
  },
  {
    number: 2,
    day: 3,
    bug: 'a payment that fits no invoice is not looked for',
    found: /is not recorded/,
    plant: rewriting('incoming-select', [['left join invoices', 'join invoices']]),
  },
  {
    number: 3,
    day: 4,
    bug: 'a transfer is recorded with the block above its own',
    found: /is recorded in block .*, which is not irreversible on the chain/,
    plant: rewriting('transfer-insert', [[/"block_number"(?=[^\n]*\n {3}from)/, '"block_number" + 1']]),
  },
  {
    number: 4,
    day: 7,
    bug: 'a deadline that passes expires what is PAID',
    found: /went from PAID to EXPIRED/,
    plant: merged(
      rewriting('invoice-overdue-select', [
        ["i.status = 'PENDING'", "i.status in ('PENDING', 'PAID')"],
        ['i.external_id, i.status,', "i.external_id, 'PENDING' as status,"],
      ]),
      rewriting('invoice-update-status', [['and i.status = t.from ', '']]),
    ),
    without: 'drop trigger invoices_paid_is_final on public.invoices',
  },
  {
    number: 5,
    day: 5,
    bug: 'a payment of a millionth too little is let pass',
    found: /is PAID; 1 transfers are matched with it, of which 0 are of/,
    plant: rewriting('incoming-select', [
      ['i.payable_micro = t.amount', 'i.payable_micro between t.amount and t.amount + 1'],
    ]),
    without: 'drop trigger transfers_fit_their_invoice on public.transfers',
  },
  {
    number: 6,
    day: 6,
    bug: 'a payment pays every invoice that asked for as much',
    found: /pays \d invoices|is matched with \d invoices/,
    plant: rewriting('incoming-select', [
      ['i.payable_micro = t.amount', 'i.payable_micro / 1000000 = t.amount / 1000000'],
    ]),
    without: `drop trigger transfers_fit_their_invoice on public.transfers;
      alter table public.transfers drop constraint transfers_once;
      alter table public.sightings drop constraint sightings_pkey`,
  },
  {
    number: 7,
    day: 4,
    bug: 'a second payment is booked as one that fits no invoice',
    found: /is unmatched of invoice , and should be matched or duplicate/,
    plant: rewriting('transfer-insert', [
      [
        /"kind", "invoice_id"(?=, "producer", "mac"\n {3}from)/,
        "replace(kind, 'duplicate', 'unmatched'), case kind when 'matched' then invoice_id end",
      ],
      ["case when t.kind <> 'unmatched' then", "case when t.kind = 'matched' then"],
    ]),
  },
  {
    number: 8,
    day: 1,
    bug: 'the idempotency key is not looked at',
    found: /key .* is of 2 invoices/,
    without: `alter table public.invoices drop constraint invoices_idempotency_key;
      alter table public.invoices drop constraint if exists invoices_external_id`,
  },
  {
    number: 9,
    day: 1,
    bug: 'an externalId is cut to 10 characters',
    found: /externalId .* is of \d invoices/,
    plant: rewriting('invoice-insert', [
      ['m.idempotency_key, m.external_id,', 'm.idempotency_key, left(m.external_id, 10),'],
    ]),
    without: 'alter table public.invoices drop constraint if exists invoices_external_id',
  },
  {
    number: 10,
    day: 8,
    bug: 'what is overdue is cleaned away',
    found: /was acknowledged and is gone/,
    plant: rewriting('invoice-overdue-select', [
      [
        'select i.id',
        "with gone as (delete from public.invoices where status = 'PENDING' and expires_at <= $2) select i.id",
      ],
      ['where i.network', 'where false and i.network'],
    ]),
    without: 'drop trigger invoices_are_kept on public.invoices; grant delete on public.invoices to quittance_runtime',
  },
  {
    number: 11,
    day: 2,
    bug: 'nobody is told of CONFIRMING',
    found: /change \d of invoice .* was to CONFIRMING, and event .* is /,
    without: `drop trigger if exists invoices_have_told_their_status on public.invoices;
      drop trigger if exists events_tell_of_their_invoice on public.events`,
    plant: rewriting('event-insert', [
      [
        'from jsonb_array_elements($2::text::jsonb) with ordinality as _ (e, place))',
        "from jsonb_array_elements($2::text::jsonb) with ordinality as _ (e, place) where e->>'type' <> 'invoice.confirming')",
      ],
    ]),
  },
  {
    number: 12,
    day: 9,
    bug: 'deliveries are planned in memory only',
    found: /to endpoint .* was never planned/,
    plant: { skips: (name) => name === 'delivery-insert' },
  },
  {
    number: 12,
    day: 2,
    bug: 'an attempt that failed counts as delivered',
    found: /are delivered by the books, and nobody received it/,
    plant: rewriting('delivery-record', [
      ['set status = input.outcome', "set status = replace(input.outcome, 'pending', 'delivered')"],
    ]),
  },
  {
    number: 13,
    day: 8,
    bug: 'each attempt has an id of its own',
    found: /acted on evt_.* times/,
    code: {
      signs: (sign, message) => sign({ ...message, id: `evt_${String(message.timestampSeconds).padStart(26, '0')}` }),
    },
  },
  {
    number: 14,
    day: 2,
    bug: 'the body is serialised anew when it is sent',
    found: /the bytes are not those of the event/,
    plant: rewriting('delivery-lease', [['e.body as', 'e.body::jsonb::text as']]),
  },
  {
    number: 15,
    day: 10,
    bug: 'every block counts as irreversible as soon as it is verified, and the node says so too',
    found: /is PAID by block .*, which is not irreversible/,
    code: { isEveryBlockSolid: true },
    lie: 'solid-ahead',
  },
  {
    number: 16,
    day: 11,
    bug: 'the cursor names the block after the one that was recorded',
    found: /the cursor stands at block .*, which is not irreversible on the chain/,
    without: 'drop trigger chain_cursors_join_head_blocks on public.chain_cursors',
    plant: rewriting('chain-cursor-update', [['solid_number = $2', 'solid_number = $2::int8 + 1']]),
  },
  {
    number: 16,
    day: 12,
    bug: 'an examined block has the time at which it was examined',
    found: /and was recorded with/,
    plant: rewriting('head-block-insert', [['t.id, t.time', 't.id, clock_timestamp()']]),
  },
  {
    number: 17,
    day: 3,
    bug: 'lateness is measured from the beginning and not from the deadline',
    found: /says late: t;|is reported as late/,
    plant: rewriting('invoice-changeable-select', [['i.expires_at,', 'i.created_at as expires_at,']]),
  },
  {
    number: 17,
    day: 9,
    bug: 'what stands in a block that may be orphaned is forgotten, and its invoice expires',
    found: /was paid in time, .*expired when block \d+ was examined/,
    plant: { skips: (name) => name === 'sighting-insert' },
  },
  {
    number: 18,
    day: 13,
    bug: 'a housekeeping job expires by the wall clock',
    found: /expired while no block after .* could be seen/,
    without: `drop trigger invoices_tell_each_change on public.invoices;
      drop trigger if exists invoices_have_told_their_status on public.invoices`,
    plant: rewriting('lease-renew', [
      [
        'update leases',
        "with expired as (update public.invoices set status = 'EXPIRED' where status = 'PENDING' and expires_at <= now()) update leases",
      ],
    ]),
  },
  {
    number: 19,
    day: 1,
    bug: 'an invoice is found for whoever knows its id',
    found: /was shown .*, which is of another/,
    plant: rewriting('invoice-select', [['on i.project_id = k.project_id and i.id', 'on i.id']]),
  },
  {
    number: 20,
    day: 2,
    bug: 'a header for debugging shows the secret',
    found: /a webhook holds a secret/,
    code: {
      signs: (sign, message) => Object.assign(sign(message), { 'x-debug-secret': message.secrets.join() }),
    },
  },
  {
    number: 21,
    day: 4,
    bug: 'what fits no invoice is booked in whole cents',
    found: /by the books, .* on the chain/,
    plant: rewriting('transfer-insert', [
      [
        /"amount_micro"(?=, "verified"[^\n]*\n {3}from)/,
        "case kind when 'unmatched' then trunc(amount_micro, -4) else amount_micro end",
      ],
    ]),
  },
  {
    number: 22,
    day: 7,
    bug: 'the dispatcher takes nothing after an error',
    found: /is pending, and was due at/,
    plant: { skips: (name) => name === 'delivery-lease' },
  },
  {
    number: 22,
    day: 14,
    bug: 'a watcher that died is never succeeded',
    found: /is the newest examined, and the head is/,
    plant: { skips: (name) => name === 'lease-acquire' || name === 'lease-renew' },
  },
  {
    number: 23,
    day: 15,
    bug: 'a block that JSON does not reproduce is unverifiable for good',
    found: /was paid exactly by .* in block \d+ and is (?:PENDING|CONFIRMING|EXPIRED)/,
    code: { isHiddenUnverifiable: true },
  },
  {
    number: 24,
    day: 9,
    bug: 'a payment is not asked when it came, and nobody looks at what arrived',
    found: /was examined before it was asked for/,
    plant: merged(
      rewriting('incoming-select', [[/\n {5}and may_pay\([^\n]*\)\n/, '\n']]),
      rewriting('invoice-insert', [
        [/\n {7}and \(select r\.address_id from arrivals r [^\n]*\) is null limit 1/, ' limit 1'],
      ]),
    ),
    without: 'drop trigger transfers_fit_their_invoice on public.transfers',
  },
];

/** Replaces parts of one statement. Each part must be found; otherwise the bug wouldn't be planted. */
function rewriting(statement: string, parts: readonly (readonly [string | RegExp, string])[]): Plant {
  return {
    rewrite: (name, text) => {
      if (name !== statement) return text;
      return parts.reduce((rewritten, [right, wrong]) => {
        const changed = rewritten.replace(right, () => wrong);
        if (changed === rewritten) throw new Error(`statement ${name} has no "${right}" any more`);
        return changed;
      }, text);
    },
  };
}

/** Plants all of these at once. */
export function merged(...plants: readonly Plant[]): Plant {
  return {
    rewrite: (name, text) => plants.reduce((rewritten, plant) => plant.rewrite?.(name, rewritten) ?? rewritten, text),
    skips: (name) => plants.some((plant) => plant.skips?.(name) === true),
  };
}
