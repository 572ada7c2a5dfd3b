import { type AccountHex, parseAddress, type TronAddress } from '@quittance/tron/address';
import { AppError, notFound } from '../../../core/domain/errors.ts';
import { decodeId, encodeId, isCheckoutToken } from '../../../core/domain/ids.ts';
import type { InvoiceStatus, Match } from '../../../core/domain/invoice.ts';
import { readTransactionReference, trimPasted } from '../../../core/domain/lookup/pasted.ts';
import { joinTexts, say, type Text } from '../../../core/domain/message.ts';
import { formatAmount, type MicroUsdt, microUsdt, parseAmount } from '../../../core/domain/money.ts';
import { toIso, type UnixMs } from '../../../core/domain/time.ts';
import { orderTimeline, type TimelineEntry } from '../../../core/domain/timeline.ts';
import { type Static, Type } from '../../../core/runtime/type.ts';
import { addressColumn } from '../../../core/store/db/address-column.ts';
import { ANY_NETWORK } from '../../../core/store/db/any-network.ts';
import type { Database, Sql } from '../../../core/store/db/database.ts';
import { rowsOf } from '../../../core/store/db/rows-of.ts';
import { maybe, micro, type Row, text } from '../../../core/store/db/statement.ts';
import type { Actor } from '../actor.ts';
import { formatFields, type Printed, writeText } from '../command-words.ts';
import { clip, printable } from '../input/problems.ts';
import { limitTime } from '../limit-time.ts';
import { operation } from '../operation.ts';
import { argument, projectId } from '../option.ts';
import { selectProject } from '../select.ts';
import { explainAddress } from './explain-address.ts';
import { explainInvoice } from './explain-invoice.ts';
import { type AskDeps, askChain, explainTransaction, explainUnrecorded } from './explain-transaction.ts';
import { describeStep, type Explanation, ExplanationView, printableText } from './explanation.ts';
import { locateCheckout, locateEvent, locateExternalId, locateInvoice } from './statements.ts';

export const explainSubjectOperation = operation({
  action: 'explainSubject',
  summary: 'Everything known about an invoice, a transaction or an address, in chronological order',
  route: 'GET /explain',
  command: 'explain',
  does: 'show the history of an invoice, a transaction or an address',
  output: ExplanationView,
  input: Type.Object({
    text: argument(
      '<subject>',
      'inv_…, your externalId, a transaction id (or its Tronscan link), or an address T…',
      'inv_…, an externalId, a transaction id or its link, or an address T…',
    ),
    projectId: projectId('only entries for this project (default: all projects)'),
  }),
  read: ({ text, projectId }) => ({ text, projectId }),
  run: async (deps, actor, asked) =>
    explainSubject({ ...deps, ask: { ...deps, ...(await deps.nodes()) } }, actor, asked),
  view: toView,
  print: printExplanation,
});

export const operations = [explainSubjectOperation];

/** `ask` asks the chain about transactions that aren't in the ledger. Without it, the chain isn't asked. */
type Deps = { db: Database; now(): UnixMs; ask?: AskDeps };
type Asked = { text: string; projectId: string | undefined };

/**
 * Explains an invoice, a transaction or an address with everything that the ledger knows. All facts come from a single snapshot, so a
 * payment that is recorded in the meantime appears either in all of them or in none. Unknown transactions are explained too, with the facts
 * that the chain shows about them. Throws `NOT_FOUND`, or `INVALID_ARGUMENT` with every possible meaning of an ambiguous text.
 */
export async function explainSubject(deps: Deps, actor: Actor, asked: Asked): Promise<Explanation> {
  const answer = await findSubject(deps, actor, asked);
  if ('verdict' in answer) return answer;
  throw severalFit(asked.text, answer);
}

/** Where to search, and the function that explains an invoice that was found. */
type Scope = { db: Sql; projects: Actor['projects']; now: UnixMs; tell: typeof explainInvoice };

/**
 * Like `explainSubject`, but if a text is ambiguous, returns its possible meanings instead of throwing. Searches one project, or all
 * projects that the actor may see. If the form that the text seems to have leads to nothing, tries the text as an external id and then
 * searches for it. Throws `NOT_FOUND`.
 */
export async function findSubject(deps: Deps, actor: Actor, asked: Asked, tell: Scope['tell'] = explainInvoice) {
  const subject = readSubject(asked.text);
  const { answer, projects } = await deps.db.snapshot(async (db) => {
    const isAny = asked.projectId === undefined;
    const projects = isAny ? actor.projects : [(await selectProject(db, actor, asked.projectId)).id];
    return { answer: await findSubjectIn({ db, projects, now: deps.now(), tell }, subject, asked), projects };
  });
  if (!('verdict' in answer)) return answer;
  // Runs after the snapshot has ended, because no node may be asked inside a transaction.
  const isAsked = answer.isUnknown === true && subject.form === 'transaction';
  return arrange(isAsked ? await askChain(deps.ask, subject.txId, projects, answer) : answer);
}

async function findSubjectIn(scope: Scope, subject: Subject, asked: Asked): Promise<Explanation | Found> {
  const found = (await explainForm(scope, subject)) ?? (await explainExternalId(scope, asked.text));
  if (found !== null) return found;
  if (subject.form === 'transaction') return explainUnrecorded(scope, subject);
  const answer = await explainSearched(scope, subject);
  if (answer === null) throw nothingFound(subject, asked);
  return answer;
}

/** Returns `null` if nothing with this form is known. */
async function explainForm(scope: Scope, subject: Subject): Promise<Explanation | null> {
  const { db, projects, now, tell } = scope;
  switch (subject.form) {
    case 'invoice':
    case 'checkout': {
      const [found] = await (subject.form === 'invoice'
        ? locateInvoice(db, subject.id, projects)
        : locateCheckout(db, subject.token, projects));
      return found === undefined ? null : tell(db, found, now);
    }
    case 'event': {
      const [event] = await locateEvent(db, subject.id, projects);
      if (event === undefined) return null;
      if (event.invoice !== null) return tell(db, event.invoice, now);
      return event.txId === null ? null : explainForm(scope, readSubject(event.txId));
    }
    case 'transaction':
      return explainTransaction(scope, subject);
    case 'address':
      // An address that is used on several networks is ambiguous, so it's searched for.
      return explainAddress(scope, subject);
    case 'external-id':
      return null;
  }
}

async function explainExternalId({ db, projects, now, tell }: Scope, text: string) {
  // PostgreSQL can't store this character in a text, so no external id can contain it.
  if (text.includes('\u0000')) return null;
  const [found, ...others] = await locateExternalId(db, text, projects);
  if (found === undefined) return null;
  return others.length > 0 ? searchLedger(db, projects, text) : tell(db, found, now);
}

/** Explains the only match for a text that isn't an exact name, or returns all matches. */
async function explainSearched(scope: Scope, subject: Subject): Promise<Explanation | Found | null> {
  const text = subject.form === 'address' ? subject.address : subject.text;
  const found = await searchLedger(scope.db, scope.projects, text);
  const [name, ...others] = [
    ...found.invoices.map(({ id }) => encodeId('inv', id)),
    ...new Set(found.transfers.map(({ txId }) => txId)),
    ...found.addresses.map(({ address }) => address),
  ];
  if (name === undefined) return null;
  return others.length > 0 ? found : explainForm(scope, readSubject(name));
}

function severalFit(text: string, { invoices, transfers, addresses }: Found): AppError {
  const problems = [
    ...invoices.map((each) => {
      const subject = encodeId('inv', each.id);
      const of = `${clip(each.externalId)} of ${printable(each.projectName)}`;
      const message = `${subject}: ${of}, ${formatAmount(each.payableMicro)} USDT, ${each.status}, ${toIso(each.createdAt)}`;
      return { subject, message };
    }),
    ...transfers.map((each) => ({
      subject: encodeId('trf', each.id),
      message: `${each.txId}: ${formatAmount(each.amountMicro)} USDT to ${printable(each.projectName)}, ${each.kind}, ${toIso(each.blockTime)}`,
    })),
    ...addresses.map(({ address, project }) => ({
      subject: address,
      message:
        project === null
          ? `${address}: this address sent you money or received money from you`
          : say`${address}: ${printable(project.name)}, ${project.network}, ${{ field: 'projectId' }} ${encodeId('prj', project.id)}`,
    })),
  ].slice(0, 10);
  return new AppError('INVALID_ARGUMENT', `${clip(text)} matches several records: search for one of these`, {
    problems,
  });
}

function nothingFound(subject: Subject, { projectId }: Asked): AppError {
  const where = projectId === undefined ? 'nothing matches' : `nothing in the project ${projectId} matches`;
  const hint = subject.form === 'external-id' && subject.hint !== null ? say` (${subject.hint})` : '';
  return notFound`${where} ${clip(subject.text)}${hint}. Search for an invoice id (inv_…), an externalId or its beginning, an amount, a transaction id or its beginning, an event (evt_…), a checkout link, or an address (T…)`;
}

/**
 * The forms that a text may have. Any text may be an external id. So if the form that it seems to have leads to nothing, callers also try
 * it as an external id. `text` is the original text.
 */
type Subject = { text: string } & (
  | { form: 'invoice'; id: string }
  | { form: 'transaction'; txId: string; hasEthereumPrefix: boolean }
  | { form: 'checkout'; token: string }
  | { form: 'event'; id: string }
  | { form: 'address'; address: TronAddress; account: AccountHex }
  /** `hint` says what the text was probably meant to be. */
  | { form: 'external-id'; hint: Text | null }
);

/** An address's page in a block explorer, such as https://tronscan.org/#/address/T…. */
const ADDRESS_LINK = /^https?:\/\/[^\s/]+\/(?:\S*\/)?address\/([0-9A-Za-z]+)/i;

/** A checkout link, such as https://pay.example.com/c/JNLz4ctfh2r9UKkyGMbYTd. */
const CHECKOUT_LINK = /^https?:\/\/[^\s/]+\/(?:\S*\/)?c\/([0-9A-Za-z]{16,22})(?:[/?#]\S*)?$/;

/** Recognises the form of the text in an operator's question. `id` is a UUID, and `txId` is 64 lower-case hex characters. */
export function readSubject(text: string): Subject {
  const trimmed = text.trim();
  const id = decodeId('inv', trimmed.toLowerCase());
  if (id !== null) return { text, form: 'invoice', id };
  const transaction = readTransactionReference(trimmed);
  if (transaction.kind === 'id') {
    return { text, form: 'transaction', txId: transaction.txId, hasEthereumPrefix: transaction.hasPrefix };
  }
  const eventId = decodeId('evt', trimmed.toLowerCase());
  if (eventId !== null) return { text, form: 'event', id: eventId };
  const token = CHECKOUT_LINK.exec(trimmed)?.[1] ?? (isCheckoutToken(trimmed) ? trimmed : undefined);
  if (token !== undefined) return { text, form: 'checkout', token };
  const word = ADDRESS_LINK.exec(trimmed)?.[1] ?? trimmed;
  const parsed = parseAddress(word);
  if (parsed.kind === 'ok') return { text, form: 'address', address: parsed.address, account: parsed.account };
  return { text, form: 'external-id', hint: hintOf(word, parsed.reason) };
}

function hintOf(word: string, reasonOfAddress: string): Text | null {
  if (/^trf_/i.test(word)) return say`for a transfer, use "${{ command: 'transfers show' }}"`;
  if (/^inv_/i.test(word))
    return 'an invoice id is "inv_" followed by 26 characters, and at least one character is wrong or missing';
  if (/^(0x)?[0-9a-f]{40,100}$/i.test(word) && !/^(0x|41)?[0-9a-f]{40}$/i.test(word)) {
    return `a transaction id has 64 characters of 0-9 and a-f, but this text has ${word.replace(/^0x/i, '').length}`;
  }
  if (/^(T[0-9A-Za-z]{29,40}|(0x|41)?[0-9a-f]{40})$/i.test(word)) return `as an address: ${reasonOfAddress}`;
  return null;
}

/**
 * The possible meanings of a text that isn't an exact name. Amounts are inclusive ranges in micro-USDT. `txId` contains the lowest and the
 * highest id that match.
 */
type Search = {
  word: string;
  spellings: string[];
  amount: { low: MicroUsdt; high: MicroUsdt } | null;
  txId: { first: string; last: string } | null;
  address: { head: string; tail: string } | null;
};

const AMOUNT = /^(?:us\$|\$|₮|usdt|usd)?\s*(\d[\d.,' ]*?)\s*(?:us\$|\$|₮|usdt|usd)?$/i;
/** The beginning of a transaction id, alone or followed by `…` and possibly the end, as shown in the console. */
const TX_START = /^(?:0x)?([0-9a-f]{6,63})(?:\.{3}[0-9a-f]*)?$/;

/** An address, either complete or shortened as in lists: `TUEZS…YWdHq`. */
const ADDRESS = /^(T[1-9A-HJ-NP-Za-km-z]{3,33})(?:\.{3}([1-9A-HJ-NP-Za-km-z]{4,30}))?$/;

/** Reads a text as people type it: in upper or lower case, with other dashes or quotes, `#`, a currency sign or a comma. */
export function readSearch(typed: string): Search {
  const plain = trimPasted(typed.replaceAll('\u0000', ''))
    .replace(/[\p{Pd}\u2212]/gu, '-')
    .replace(/^["'“”„«»]+|["'“”„«»]+$/gu, '');
  const bare = plain.replace(/^#\s*/, '');
  const word = bare.toLowerCase();
  const first = bare.slice(0, 1).toUpperCase() + word.slice(1);
  const start = TX_START.exec(word)?.[1];
  const [, head, tail = head] = ADDRESS.exec(bare) ?? [];
  return {
    word,
    spellings: [...new Set([plain, bare, word, bare.toUpperCase(), first, `#${bare}`])],
    amount: readAmountRange(bare),
    txId: start === undefined ? null : { first: start.padEnd(64, '0'), last: start.padEnd(64, 'f') },
    address: head === undefined || tail === undefined ? null : { head, tail },
  };
}

/** Reads `25`, `25,00` and `$25` as 25.00 with any further decimals, and `27.0079` as every amount that begins with these digits. */
function readAmountRange(plain: string): Search['amount'] {
  const digits = AMOUNT.exec(plain)?.[1]?.replace(/[' ]/g, '') ?? '';
  const decimal = digits.search(/[.,]\d*$/);
  // A single comma before three digits is a thousands separator, as in 1,500.
  const isWhole = /^\d{1,3}(?:,\d{3})+$|^\d{1,3}(?:\.\d{3}){2,}$/.test(digits) || decimal < 0;
  const whole = (isWhole ? digits : digits.slice(0, decimal)).replace(/[.,]/g, '');
  const fraction = isWhole ? '' : digits.slice(decimal + 1);
  const parsed = parseAmount(fraction === '' ? whole : `${whole}.${fraction}`);
  if (parsed.kind !== 'ok') return null;
  const width = 10n ** BigInt(6 - Math.min(6, Math.max(2, fraction.length)));
  return { low: parsed.amountMicro, high: microUsdt(parsed.amountMicro + width - 1n) };
}

/** The limit for each kind of result. */
const LIMIT = 20;
const TIMEOUT_MS = 3000;
/**
 * These searches have no index, because each index would slow down creating invoices. They search only the newest rows, with one limit for
 * all projects together.
 */
const LOOKED = 10_000;

const OWN = `own as (
     select id, name, network from projects where $1::uuid[] is null or id = any($1) order by archived_at is not null, created_at desc limit 100),
   share as (select greatest(100, ${LOOKED} / greatest(1, count(*))) as size from own)`;

const invoiceShape = {
  id: 'uuid',
  projectId: 'uuid',
  projectName: 'text',
  externalId: 'text',
  status: text<InvoiceStatus>(),
  payableMicro: micro<MicroUsdt>('int8'),
  createdAt: 'timestamptz',
} as const;

/**
 * Searches these projects' invoices. Finds external ids in one of these spellings, and payable amounts, in invoices of any age. Finds
 * beginnings of external ids, texts in options, and requested amounts only in the newest 10,000 invoices.
 */
const searchInvoices = rowsOf(
  'search-invoices',
  invoiceShape,
  `with ${OWN},
   found as (
     select i.project_id, i.id from own cross join lateral (
       select project_id, id from invoices where project_id = own.id and external_id = any($2::text[]) limit ${LIMIT}) i
     union
     select i.project_id, i.id from own join addresses a on a.project_id = own.id cross join lateral (
       select project_id, id from invoices
       where address_id = a.id and payable_micro >= $4::int8 and payable_micro <= $5::int8 limit ${LIMIT}) i
     union
     select i.project_id, i.id from own cross join lateral (
       select project_id, id, external_id, requested_micro, options from invoices
       where project_id = own.id order by id desc limit (select size from share)) i
     where starts_with(translate(lower(i.external_id), '‐‑‒–—―−', '-------'), $3)
       or (length($3) >= 3 and strpos(lower(i.options), $6) > 0)
       or i.requested_micro between $4::int8 and $5::int8)
   select i.id, i.project_id, own.name as project_name, i.external_id, i.status, i.payable_micro, i.created_at
   from found f join invoices i on i.project_id = f.project_id and i.id = f.id join own on own.id = i.project_id
   order by i.external_id = any($2) desc, i.id desc limit ${LIMIT}`,
  (projects: readonly string[] | null, { word, spellings, amount }: Search) => [
    ...[projects, spellings, word, amount?.low ?? null, amount?.high ?? null, `:${JSON.stringify(word).slice(0, -1)}`],
  ],
);

const transferShape = {
  id: 'uuid',
  projectId: 'uuid',
  projectName: 'text',
  txId: 'text',
  kind: text<Match>(),
  amountMicro: micro<MicroUsdt>(),
  blockTime: 'timestamptz',
} as const;

/** Searches transfers to these projects by the beginning of their transaction id, and the newest 10,000 unmatched transfers by amount. */
const searchTransfers = rowsOf(
  'search-transfers',
  transferShape,
  `with ${OWN},
   found as (
     select t.id from transfers t join own on own.id = t.project_id
     where t.network in ${ANY_NETWORK} and t.tx_id >= decode($2, 'hex') and t.tx_id <= decode($3, 'hex')
     union
     select t.id from own cross join lateral (
       select id, amount_micro from transfers
       where project_id = own.id and kind <> 'matched' order by id desc limit (select size from share)) t
     where t.amount_micro between $4::int8 and $5::int8)
   select t.id, t.project_id, own.name as project_name, encode(t.tx_id, 'hex') as tx_id, t.kind, t.amount_micro, t.block_time
   from found f join transfers t on t.id = f.id join own on own.id = t.project_id
   order by t.id desc limit ${LIMIT}`,
  (projects: readonly string[] | null, { amount, txId }: Search) => [
    ...[projects, txId?.first ?? null, txId?.last ?? null, amount?.low ?? null, amount?.high ?? null],
  ],
);

/** `address` belongs to one of our projects; `strange` belongs to a stranger, as sender or recipient. */
const addressShape = {
  address: 'address?',
  strange: 'text?',
  project: maybe({ id: 'uuid', name: 'text', network: 'text' }),
} as const;

/** Finds addresses with the given beginning and end. */
const searchAddresses = rowsOf(
  'search-addresses',
  addressShape,
  `with ${OWN},
   strange as (
     select t.from_address as address from own cross join lateral (
       select from_address from transfers
       where project_id = own.id and left(from_address, 4) = left($2, 4) and right(from_address, 4) = right($3, 4)
         and starts_with(from_address, $2) and right(from_address, length($3)) = $3 limit 1000) t
     union
     select o.to_address from own cross join lateral (
       select to_address from outgoing_transfers
       where project_id = own.id and left(to_address, 4) = left($2, 4) and right(to_address, 4) = right($3, 4)
         and starts_with(to_address, $2) and right(to_address, length($3)) = $3 limit 1000) o)
   (select ${addressColumn('a')} as address, null as strange, own.id as project_id, own.name as project_name,
      own.network as project_network
    from own join addresses a on a.project_id = own.id and left(a.address, 4) = left($2, 4) and right(a.address, 4) = right($3, 4)
      and starts_with(a.address, $2) and right(a.address, length($3)) = $3
    order by a.created_at desc limit ${LIMIT})
   union all
   (select null, address, null, null, null from strange s
    where not exists (select from own join addresses a on a.project_id = own.id and left(a.address, 4) = left(s.address, 4)
      and right(a.address, 4) = right(s.address, 4) and a.address = s.address) limit ${LIMIT})`,
  (projects: readonly string[] | null, { head, tail }: { head: string; tail: string }) => [projects, head, tail],
);

export type Found = {
  invoices: Row<typeof invoiceShape>[];
  transfers: Row<typeof transferShape>[];
  addresses: { address: string; project: Row<typeof addressShape>['project'] }[];
};

/**
 * Returns the possible meanings of a text in these projects (UUIDs) or in all projects, the newest 20 of each kind. `tx` must be a separate
 * transaction.
 */
async function searchLedger(tx: Sql, projects: readonly string[] | null, typed: string): Promise<Found> {
  const search = readSearch(typed);
  if (search.word === '') return { invoices: [], transfers: [], addresses: [] };
  await limitTime(tx, TIMEOUT_MS);
  const invoices = await searchInvoices(tx, projects, search);
  const transfers = search.amount === null && search.txId === null ? [] : await searchTransfers(tx, projects, search);
  const named = search.address === null ? [] : await searchAddresses(tx, projects, search.address);
  const addresses = named.map(({ address, strange, project }) => ({ address: address ?? strange ?? '', project }));
  return { invoices, transfers, addresses };
}

/** Sorts the entries by time, and drops omissions that don't omit anything. */
function arrange({ timeline, omissions, ...rest }: Explanation): Explanation {
  const left = omissions.filter(({ shown, total }) => total > shown);
  return { ...rest, timeline: orderTimeline(timeline), omissions: left };
}

/** Converts an explanation for programs. Stored text is escaped so that it can't control a terminal. */
function toView(explanation: Explanation): Static<typeof ExplanationView> {
  const { subject, verdict, timeline, omissions, next } = explanation;
  return {
    subject,
    verdict: joinTexts(verdict.map(printableText), ' '),
    timeline: timeline.map(({ at, kind, text, data }) => ({ at: toIso(at), kind, text: printable(text), ...data })),
    ...(omissions.length === 0 ? {} : { notShown: [...omissions] }),
    ...(next.length === 0 ? {} : { next: next.map(describeStep) }),
  };
}

/** Writes an explanation for people. */
function printExplanation({ verdict, fields, timeline, omissions, next, isUnknown }: Explanation): Printed {
  return {
    text: [
      verdict.map((text) => writeText(printableText(text))).join('\n'),
      formatFields(fields),
      timeline.map(formatEntry).join('\n'),
      omissions.map(({ what, shown, total }) => `not shown: ${total - shown} more of ${total} ${what}`).join('\n'),
    ],
    next: next.map(describeStep),
    isUnknown: isUnknown === true,
  };
}

/** The width of the longest kind. */
const KIND_WIDTH = 11;
const INDENT = ' '.repeat('2026-09-01T12:00:00.000Z'.length + 2 + KIND_WIDTH + 2);

function formatEntry({ at, kind, text, details }: TimelineEntry): string {
  const first = `${toIso(at)}  ${kind.padEnd(KIND_WIDTH)}  ${printable(text)}`;
  return [first, ...details.map((detail) => `${INDENT}${printable(detail)}`)].join('\n');
}
