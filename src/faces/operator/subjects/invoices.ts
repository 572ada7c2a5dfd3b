import { createHash, randomUUID } from 'node:crypto';
import { AppError, conflict, invalidArgument } from '../../../core/domain/errors.ts';
import { decodeId, encodeId, firstIdOf, NIL_UUID } from '../../../core/domain/ids.ts';
import { INVOICE_STATUSES, type InvoiceStatus } from '../../../core/domain/invoice.ts';
import { say, type Text } from '../../../core/domain/message.ts';
import { formatAmount, type MicroUsdt, parseAmount } from '../../../core/domain/money.ts';
import { nodesVariable } from '../../../core/domain/network.ts';
import { POLICIES, type Policy } from '../../../core/domain/policy.ts';
import { describePrice } from '../../../core/domain/price.ts';
import { toIso, type UnixMs } from '../../../core/domain/time.ts';
import { createDatabaseClock, type DeadlineClock, readDatabaseClock } from '../../../core/payments/clocks.ts';
import { type Created, createInvoice } from '../../../core/payments/create-invoice.ts';
import { createWatchedNetworks } from '../../../core/payments/watched-networks.ts';
import { systemClock } from '../../../core/runtime/clock.ts';
import { Type } from '../../../core/runtime/type.ts';
import { addressColumn } from '../../../core/store/db/address-column.ts';
import type { Sql } from '../../../core/store/db/database.ts';
import { answerOf, rowOf } from '../../../core/store/db/rows-of.ts';
import { count, hex, listColumns, maybe, micro, type Row, text } from '../../../core/store/db/statement.ts';
import { withdrawInvoice } from '../../../core/store/ledger/invoices.ts';
import { findInvoicePayment } from '../../../core/store/ledger/payments.ts';
import { columnsText, fieldsText, isoSecond } from '../command-words.ts';
import type { ExportedRows } from '../export/write-rows.ts';
import {
  choice,
  id,
  text as line,
  listOf,
  of,
  maybe as orNull,
  part,
  price,
  type Shown,
  schemaOf,
  show,
  time,
  usdt,
  whole,
} from '../fields.ts';
import { clip, detectSecret, FieldError } from '../input/problems.ts';
import { readChoice, readLengthLimit, readOneNote, readPeriod } from '../input/readers.ts';
import { limitTime } from '../limit-time.ts';
import { localOperation, type OperationDeps } from '../operation.ts';
import { argument, exportFile, exportFormat, limit, needed, line as option, projectId } from '../option.ts';
import { recordAction } from '../record-actions.ts';
import { findInvoiceId, selectProject } from '../select.ts';
import { insertApiKey } from './keys.ts';

/**
 * `paid` is the transfer of exactly the payable amount, with the time of its block. `price` is in another currency, and was converted to the
 * requested amount.
 */
const invoiceFields = {
  ...{ invoiceId: of('id', id('inv')), projectId: id('prj'), externalId: line, status: choice(INVOICE_STATUSES) },
  ...{ requestedAmount: of('requestedMicro', usdt), payableAmount: of('payableMicro', usdt), address: line },
  ...{ price, policy: choice(POLICIES), createdAt: time, expiresAt: time, checkoutUrl: line },
  paid: orNull(part({ txId: line, time: of('blockTime', time) })),
};
export const InvoiceView = schemaOf(invoiceFields);
export type InvoiceView = Shown<typeof invoiceFields>;

/** `looked` is how many invoices were searched for this page. The next page begins before the invoice `nextBefore`. */
export const InvoiceListView = listOf(invoiceFields, { looked: whole.schema, nextBefore: orNull(line).schema });
/** `isNew` is `false` if the same invoice had been requested before. */
type NewInvoiceView = { invoice: InvoiceView; isNew: boolean };
export type InvoiceListView = { data: InvoiceView[]; looked: number; nextBefore: string | null };

const listed = {
  id: 'uuid',
  projectId: 'uuid',
  externalId: 'text',
  status: text<InvoiceStatus>(),
  requestedMicro: micro<MicroUsdt>('int8'),
  payableMicro: micro<MicroUsdt>('int8'),
  address: 'address',
  policy: text<Policy>(),
  checkoutToken: 'text',
  options: 'text?',
  createdAt: 'timestamptz',
  expiresAt: 'timestamptz',
  paid: maybe({ txId: hex(), blockTime: 'timestamptz' }),
} as const;
/** An invoice in a list, with the transfer that paid it. Ids are UUIDs. */
type DeskInvoice = Row<typeof listed>;

const SOURCES = {
  address: addressColumn('a'),
  policy: 'a.policy',
  paid: { txId: "encode(t.tx_id, 'hex')", blockTime: 't.block_time' },
} as const;
const JOINS = 'join addresses a on a.id = i.address_id left join transfers t on t.id = i.paid_transfer_id';

/** `notBefore` and `before` are UUIDs, whose order is the order of creation. `amountMicro` is the requested or the payable amount. */
type InvoiceFilter = {
  status: InvoiceStatus | null;
  policy: Policy | null;
  amountMicro: MicroUsdt | null;
  notBefore: string | null;
  before: string | null;
};

/** `looked` is how many invoices were searched; `last` is the oldest of them. */
type Found = { invoices: DeskInvoice[]; looked: number; last: string | null };

const NO_UUID_IS_ABOVE = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/**
 * Returns the matching invoices among a project's next `window` invoices, newest first. No index serves every filter, and each index would
 * slow down creating invoices. So the search is limited, and the result says how far it went. An invoice that reserves exactly the amount
 * is found by its reservation at any age, but only if `isFirst`.
 */
const findDeskInvoices = answerOf(
  'invoice-desk-list',
  { looked: count, last: 'uuid?', invoice: maybe(listed) },
  `with seen as materialized (
     select i.id, i.address_id, i.status, i.requested_micro, i.payable_micro from invoices i
     where i.project_id = $1 and i.id >= $2 and i.id < $3 order by i.id desc limit $4::int8),
   last as (select id from seen order by id limit 1),
   fitting as (
     select * from seen where $5::int8 is null or payable_micro = $5 or requested_micro = $5
     union all
     select i.id, i.address_id, i.status, i.requested_micro, i.payable_micro
     from addresses a join invoices i on i.address_id = a.id and i.payable_micro = $5
     where a.project_id = $1 and $9::bool and i.id >= $2 and i.id < (select id from last)),
   chosen as (
     select f.id from fitting f join addresses a on a.id = f.address_id
     where ($6::text is null or f.status = $6) and ($7::text is null or a.policy = $7)
     order by f.id desc limit $8::int8)
   select (select count(*) from seen) as looked, (select id from last) as last, f.*
   from (select) as one
   left join lateral (
     select ${listColumns({ invoice: maybe(listed) }, 'i.', { invoice: SOURCES })}
     from chosen c join invoices i on i.id = c.id ${JOINS}) f on true
   order by f.invoice_id desc`,
  (projectId: string, filter: InvoiceFilter, page: { limit: number; window: number; isFirst: boolean }) => [
    ...[projectId, filter.notBefore ?? NIL_UUID, filter.before ?? NO_UUID_IS_ABOVE, page.window, filter.amountMicro],
    ...[filter.status, filter.policy, page.limit, page.isFirst],
  ],
  (rows): Found => ({
    invoices: rows.flatMap(({ invoice }) => invoice ?? []),
    looked: rows[0]?.looked ?? 0,
    last: rows[0]?.last ?? null,
  }),
);

/** Returns one invoice in a project. */
const findDeskInvoice = rowOf(
  'invoice-desk-select',
  listed,
  `select ${listColumns(listed, 'i.', SOURCES)} from invoices i ${JOINS} where i.project_id = $1 and i.id = $2`,
  (projectId: string, id: string) => [projectId, id],
);

type InvoiceDeps = Pick<OperationDeps, 'db' | 'publicUrl'>;
const PROJECT = { projectId: projectId() };
const filters = {
  status: option('<status>', 'PENDING, CONFIRMING, EXPIRED or PAID'),
  amount: option('<usdt>', 'only invoices with exactly this requested or payable amount'),
  from: option('<date>', 'created on or after this day (2026-09-01, UTC) or time (with its zone)'),
  to: option('<date>', 'created by the end of this day, or before this time'),
};
/** Only the console uses this. */
const policy = { policy: Type.Optional(Type.String()) };
type FilterInput = { [Field in keyof typeof filters | 'policy' | 'before']?: string | undefined };

/** The maximum number of invoices to search for a page, which takes a few hundredths of a second. */
const WINDOW = 10_000;
const MAX_LISTED = 500;
/** This many invoices usually contain a full page of matches. */
const FIRST_WINDOW = 500;
const TIMEOUT_MS = 5000;

/** Reads the filter. Throws `INVALID_ARGUMENT`. */
function readInvoiceFilter(input: FilterInput): InvoiceFilter {
  const { from, until } = readPeriod(input);
  const ends = [
    ...(input.before === undefined ? [] : [readInvoiceId('before', input.before)]),
    ...(until === null ? [] : [firstIdOf(until)]),
  ];
  return {
    status: readChoice('status', input.status, INVOICE_STATUSES),
    policy: readChoice('policy', input.policy, POLICIES),
    amountMicro: input.amount === undefined ? null : readAmount('amount', input.amount),
    notBefore: from === null ? null : firstIdOf(from),
    before: ends.toSorted()[0] ?? null,
  };
}

/** Reads an amount of USDT in the API's format. Throws `INVALID_ARGUMENT`. */
function readAmount(field: string, text: string): MicroUsdt {
  const parsed = parseAmount(text);
  if (parsed.kind === 'ok') return parsed.amountMicro;
  throw new FieldError(field, `is ${clip(text)}: it ${parsed.reason}`);
}

function readInvoiceId(field: string, text: string): string {
  const id = decodeId('inv', text);
  if (id !== null) return id;
  throw new FieldError(field, `is ${clip(text)}: an invoice id is "inv_" followed by 26 characters`);
}

/** Lists a project's invoices that match, newest first. Searches at most 10,000 for a page. */
export const listInvoices = localOperation({
  action: 'listInvoices',
  command: 'invoice list',
  does: 'list invoices, newest first',
  input: Type.Object({
    ...{ ...PROJECT, ...filters, ...policy, limit: limit(MAX_LISTED, '50') },
    before: option('<inv_…>', 'show invoices created before this one'),
  }),
  read: ({ projectId, limit: most = '50', ...given }) => ({
    ...{ ...readInvoiceFilter(given), projectId, limit: readLengthLimit(most, { least: 1, most: MAX_LISTED }) },
  }),
  run: async ({ db, publicUrl }: InvoiceDeps, actor, { projectId, limit, ...filter }): Promise<InvoiceListView> => {
    const project = await selectProject(db, actor, projectId);
    const { window, ...found } = await db.snapshot(async (tx) => {
      await limitTime(tx, TIMEOUT_MS);
      const look = async (window: number) => {
        const page = { limit: limit + 1, window, isFirst: filter.before === null };
        return { window, ...(await findDeskInvoices(tx, project.id, filter, page)) };
      };
      const widest = windowOf(filter, limit + 1);
      // A search for an amount also finds invoices outside the window, so it uses the widest window from the start.
      if (filter.amountMicro !== null || widest <= FIRST_WINDOW) return look(widest);
      const first = await look(FIRST_WINDOW);
      return first.invoices.length > limit || first.looked < FIRST_WINDOW ? first : look(widest);
    });
    const shown = found.invoices.slice(0, limit);
    const { looked } = found;
    // The next page continues after the last invoice shown or, if too few match, after the last one searched.
    const last = found.invoices.length > limit ? (shown.at(-1)?.id ?? null) : looked === window ? found.last : null;
    return { data: await view(shown, publicUrl), looked, nextBefore: last === null ? null : encodeId('inv', last) };
  },
  print: ({ data, nextBefore, looked }) => ({
    text: columnsText(data, [
      ['INVOICE', 'invoiceId'],
      ['CREATED (UTC)', ({ createdAt }) => isoSecond(createdAt)],
      ['STATUS', 'status'],
      ['REQUESTED', 'requestedAmount'],
      ['TO PAY', 'payableAmount'],
      ['EXTERNAL ID', 'externalId'],
    ]),
    next:
      nextBefore !== null
        ? say`${data.length === 0 ? `no match in ${looked} invoices; ` : ''}there are more: for the next page, repeat the command with ${{ field: 'before' }} ${nextBefore}`
        : data.length === 0
          ? 'no matching invoices'
          : say`see one with "${{ command: 'invoice show', args: ['inv_…'] }}"`,
  }),
});

/** Returns how many invoices to search for this many matches. If the only filter is the time, every searched invoice matches. */
function windowOf({ status, policy, amountMicro }: InvoiceFilter, wanted: number): number {
  return status === null && policy === null && amountMicro === null ? wanted : WINDOW;
}

const named = argument('<invoice>', 'invoice id (inv_…) or your order id');

export const showInvoice = localOperation({
  action: 'showInvoice',
  command: 'invoice show',
  does: 'show an invoice with its payment link',
  input: Type.Object({ invoiceId: named, ...PROJECT }),
  run: async ({ db, publicUrl }: InvoiceDeps, actor, { projectId, invoiceId }): Promise<InvoiceView> => {
    const project = await selectProject(db, actor, projectId);
    const found = await findDeskInvoice(db, project.id, await findInvoiceId(db, project.id, invoiceId));
    return viewOne(found, invoiceId, publicUrl);
  },
  print: (invoice) => ({
    text: toText(invoice),
    next: say`to see its full history: "${{ command: 'explain', args: [invoice.invoiceId] }}"`,
  }),
});

async function viewOne(found: DeskInvoice | null, asked: string, publicUrl: InvoiceDeps['publicUrl']) {
  const [invoice] = await view(found === null ? [] : [found], publicUrl);
  if (invoice === undefined) throw new Error(`invoice ${asked} disappeared, although invoices are never deleted`);
  return invoice;
}

async function view(invoices: readonly DeskInvoice[], publicUrl: InvoiceDeps['publicUrl']): Promise<InvoiceView[]> {
  const url = await publicUrl();
  return invoices.map((each) => show(invoiceFields, { ...each, checkoutUrl: `${url}/c/${each.checkoutToken}` }));
}

const toText = (invoice: InvoiceView) =>
  fieldsText(invoice, [
    ['invoice', 'invoiceId'],
    ['project', 'projectId'],
    ['external id', 'externalId'],
    ['status', 'status'],
    ['requested', ({ requestedAmount }) => `${requestedAmount} USDT`],
    ['price', ({ price }) => price && describePrice(price)],
    ['to pay', ({ payableAmount }) => `${payableAmount} USDT`],
    ['to', 'address'],
    ['policy', 'policy'],
    ['created', 'createdAt'],
    ['expires', 'expiresAt'],
    ['paid', ({ paid }) => paid && `in transaction ${paid.txId}, ${paid.time}`],
    ['payment link', 'checkoutUrl'],
  ]);

/** An export's columns, in order. Scripts and spreadsheets rely on the order, so add new columns at the end. */
const COLUMNS: ExportedRows<InvoiceView>['columns'] = [
  ...(['createdAt', 'invoiceId', 'externalId', 'status', 'requestedAmount', 'payableAmount'] as const).map(ownColumn),
  ...(['address', 'policy', 'expiresAt'] as const).map(ownColumn),
  ['paidAt', ({ paid }) => paid?.time],
  ['txId', ({ paid }) => paid?.txId],
  ['projectId', ({ projectId }) => projectId],
];

function ownColumn<Name extends keyof InvoiceView>(name: Name) {
  return [name, (invoice: InvoiceView) => invoice[name]] as const;
}

/** How many invoices are in memory at once. */
const BATCH = 500;

/**
 * Yields a project's invoices that match, in batches, newest first. Each batch continues after the last one without a common transaction,
 * which a slow reader would keep open for hours. Invoices created in the meantime aren't included.
 */
export const exportInvoices = localOperation({
  action: 'exportInvoices',
  command: 'invoice export',
  does: 'export all invoices for your bookkeeping, newest first',
  isExport: true,
  input: Type.Object({ ...PROJECT, ...filters, ...policy, format: exportFormat(), output: exportFile() }),
  read: ({ projectId, ...given }) => ({ projectId, ...readInvoiceFilter(given) }),
  run: async ({ db, publicUrl }: InvoiceDeps, actor, { projectId, ...filter }): Promise<ExportedRows<InvoiceView>> => {
    const project = await selectProject(db, actor, projectId);
    const window = windowOf(filter, BATCH);
    const batches = (async function* () {
      for (let { before } = filter; ; ) {
        const page = { limit: BATCH, window, isFirst: false };
        const { invoices, looked, last } = await findDeskInvoices(db, project.id, { ...filter, before }, page);
        if (invoices.length > 0) yield await view(invoices, publicUrl);
        if (invoices.length < BATCH && looked < window) return;
        before = invoices.length === BATCH ? (invoices.at(-1)?.id ?? null) : last;
      }
    })();
    return { columns: COLUMNS, batches, name: 'invoice', plural: 'invoices' };
  },
});

type Deps = Pick<
  OperationDeps,
  'db' | 'publicUrl' | 'networks' | 'now' | 'random' | 'randomBelow' | 'deadlineClock'
> & {
  steadyNow?(): UnixMs;
};
/** The name of a project's own key for these invoices. */
export const HAND_KEY_NAME = 'invoices created by hand';
const MAX_EXTERNAL_ID = 200;

/** Throws `INVALID_ARGUMENT`. */
function readExternalId(field: string, text: string): string {
  const { length } = [...text];
  if (detectSecret(text) !== null) throw new FieldError(field, 'looks like a secret, and payers may read it');
  if (length < 1 || length > MAX_EXTERNAL_ID) {
    throw new FieldError(field, `has ${length} characters: use 1 to ${MAX_EXTERNAL_ID}`);
  }
  if (text.includes('\0') || !text.isWellFormed())
    throw new FieldError(field, 'contains a character that cannot be stored');
  return text;
}

/**
 * Creates an invoice as the API does, and records who created it, in one transaction. Uses the project's own key, whose secret no one has;
 * if that key was revoked, no invoice can be created. The limits for unpaid invoices don't apply, because they protect against strangers.
 * Repeating an `idempotencyKey` returns the same invoice. Throws `NOT_FOUND` or `CONFLICT`.
 */
export const createInvoiceByHand = localOperation({
  action: 'createInvoiceByHand',
  command: 'invoice create',
  does: 'create an invoice by hand, for a shop that does not use the API; recorded in the audit log',
  by: { help: 'your name for the audit log (default: your user name)', before: 'projectId' },
  input: Type.Object({
    amount: needed('<usdt>', 'amount in USDT, such as 25.00'),
    externalId: needed('<id>', 'your order id, 1 to 200 characters, unique in the project'),
    note: option('<text>', 'private note, which payers do not see'),
    idempotencyKey: option(
      '<key>',
      'if you repeat the command with the same key, it returns the same invoice; 1 to 200 characters',
    ),
    ...PROJECT,
  }),
  read: ({ projectId, amount, externalId, note, idempotencyKey }) => ({
    requestedMicro: readAmount('amount', amount.trim()),
    externalId: readExternalId('externalId', externalId.trim()),
    note: readOneNote(note),
    idempotencyKey: `command-${readKey(idempotencyKey ?? randomUUID())}`,
    projectId,
  }),
  run: async (deps: Deps, actor, { projectId, idempotencyKey, note, ...wanted }): Promise<NewInvoiceView> => {
    const project = await selectProject(deps.db, actor, projectId);
    const { deadlineClock: clock, ...own } = deps;
    const { db, now, publicUrl, networks } = own;
    const why = await createWatchedNetworks({ db, networks }).whyNot(project.network);
    if (why !== null) {
      const variable = nodesVariable(project.network);
      const reason =
        why === 'not-set-up'
          ? `no ${project.network} watcher has ever run. Set ${variable}, and start a watcher`
          : say`no ${project.network} node has returned a block yet. Check ${variable}: ${{ command: 'doctor' }} shows the cause`;
      throw conflict`no invoice was created, because Quittance would not see a payment: ${reason}`;
    }
    const deadlineClock = typeof clock === 'function' ? await clock() : clock;
    return db.transaction(async (tx) => {
      const keyId = await ensureKey(tx, project.id, own);
      const { network, policy, maxSurchargeMicro, invoiceLifetimeMs } = project;
      const rule = { network, policy, maxSurchargeMicro, invoiceLifetimeMs };
      const input = { ...wanted, ...rule, keyId, projectId: project.id, idempotencyKey };
      const created = await createInvoice(
        { ...own, ...(deadlineClock && { deadlineClock }), db: { ...db, ...tx } },
        input,
      );
      if (created.kind !== 'created' && created.kind !== 'replayed')
        throw new AppError('CONFLICT', whyNot(created, wanted, keyId));
      const found = await findDeskInvoice(tx, project.id, created.invoice.id);
      const invoice = await viewOne(found, created.invoice.id, publicUrl);
      const isNew = created.kind === 'created';
      if (isNew) {
        const { invoiceId: subject, externalId, requestedAmount } = invoice;
        const detail = { externalId, requestedAmount, note };
        await recordAction(tx, actor, now(), 'invoice.created', { projectId: project.id, subject, detail });
      }
      return { invoice, isNew };
    });
  },
  print: ({ invoice, isNew }) => ({
    text: toText(invoice),
    next: isNew ? 'send the payer the link' : 'the invoice already existed, and was created with the same key',
  }),
});

/** Throws `INVALID_ARGUMENT`. */
function readKey(key: string): string {
  if (/^[!-~]{1,200}$/.test(key)) return key;
  throw invalidArgument`${{ field: 'idempotencyKey' }} must have 1 to 200 visible ASCII characters, without spaces, such as order-1001`;
}

/** Reads the database's clock, for a command that creates one invoice and exits. */
export async function readDeadlineClock(db: Sql): Promise<DeadlineClock> {
  const clock = createDatabaseClock(systemClock, () => performance.now());
  clock.read(await readDatabaseClock(db), performance.now());
  return clock;
}

/** Returns the id of the key (UUID), which is always the same for a project. Its stored secret hash is random, so no secret matches it. */
async function ensureKey(tx: Sql, projectId: string, { random }: Pick<Deps, 'random'>): Promise<string> {
  const hex = createHash('sha256').update(`${HAND_KEY_NAME} ${projectId}`).digest('hex');
  const id = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
  const secretSha256 = Buffer.from(random(32));
  await insertApiKey(tx, { id, projectId, name: HAND_KEY_NAME, secretSha256, allowedCidrs: null, expiresAt: null });
  return id;
}

/** Explains why an invoice was not created. */
function whyNot(
  created: Exclude<Created, { kind: 'created' | 'replayed' }>,
  { requestedMicro, externalId }: { requestedMicro: MicroUsdt; externalId: string },
  keyId: string,
): Text {
  switch (created.kind) {
    case 'conflict': {
      const existing = encodeId('inv', created.existing.id);
      const text =
        created.rule === 'externalId'
          ? `the order ${clip(externalId)} already has an invoice: ${existing}. Check that invoice, or choose another order id`
          : `this form has already created ${existing} with different input`;
      return `no invoice was created: ${text}`;
    }
    case 'amount-unavailable': {
      const where = created.addressesInUse === 0 ? 'the project has no address in use' : 'all of them are in use';
      const frozen =
        created.frozenAddresses === 0 ? '' : `, and Tether froze ${created.frozenAddresses} of its addresses`;
      return say`no payable amount is free for ${formatAmount(requestedMicro)} USDT: ${where}${frozen}. Add an address with "${{ command: 'address add' }}" and try again`;
    }
    case 'clocks-apart':
      return `no invoice was created. ${created.problem}`;
    case 'rule-not-signed':
      return `no invoice was created, because ${created.problem}`;
    case 'project-archived':
      return say`no invoice was created: the project is archived. Restore it with "${{ command: 'project unarchive' }}" and try again`;
    case 'key-not-valid':
      return `you can no longer create invoices by hand for this project, because the key that Quittance uses for them, ${encodeId('key', keyId)}, was revoked`;
  }
}

/**
 * Withdraws an invoice's page as the API does, and records the actor, in one transaction. Repeating it changes nothing. Throws `NOT_FOUND`,
 * or `CONFLICT` for a paid invoice.
 */
export const withdrawInvoiceByHand = localOperation({
  action: 'withdrawInvoiceByHand',
  command: 'invoice withdraw',
  does: 'withdraw an invoice: its page stops asking for payment, but a payment that still arrives counts',
  by: { help: 'your name for the audit log (default: your user name)', before: 'projectId' },
  input: Type.Object({ invoiceId: named, ...PROJECT }),
  run: async ({ db, now }: Pick<OperationDeps, 'db' | 'now'>, actor, { projectId, invoiceId }) => {
    const project = await selectProject(db, actor, projectId);
    const at = now();
    return db.transaction(async (tx) => {
      const id = await findInvoiceId(tx, project.id, invoiceId);
      const before = await findInvoicePayment(tx, project.id, id);
      await withdrawInvoice(tx, { id, projectId: project.id, network: project.network, at });
      const withdrawnAt = (await findInvoicePayment(tx, project.id, id))?.withdrawnAt ?? null;
      if (withdrawnAt === null) {
        const message = 'the invoice is PAID, so you cannot withdraw it; if necessary, send the money back';
        throw new AppError('CONFLICT', message);
      }
      // Concurrent requests wait for each other at the row, so the second request finds the time that the first one stored.
      if (before?.withdrawnAt === null && withdrawnAt === at) {
        const subject = encodeId('inv', id);
        await recordAction(tx, actor, at, 'invoice.withdrawn', { projectId: project.id, subject, detail: {} });
      }
      return {
        ...{ invoiceId: encodeId('inv', id), projectId: encodeId('prj', project.id) },
        withdrawnAt: toIso(withdrawnAt),
      };
    });
  },
  print: ({ withdrawnAt, invoiceId }) => ({ text: `withdrawn since ${withdrawnAt}: ${invoiceId}` }),
});

export const operations = [listInvoices, showInvoice, createInvoiceByHand, withdrawInvoiceByHand, exportInvoices];
