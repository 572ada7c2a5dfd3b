import { encodeId } from '../../domain/ids.ts';
import { formatAmount, microUsdt } from '../../domain/money.ts';
import { NETWORKS } from '../../domain/network.ts';
import { unixMs } from '../../domain/time.ts';
import { diagnoseTransfers } from '../../payments/diagnose-transfers.ts';
import { systemClock } from '../../runtime/clock.ts';
import type { Sql } from '../../store/database.ts';
import { type ExplainedOutgoing, findOutgoingOfTransaction } from '../../store/explain-address.ts';
import { type ExplainedSighting, findSightingsOfTransaction } from '../../store/explain-candidates.ts';
import { findEventsOfTransfers } from '../../store/explain-events.ts';
import { findTransfersOfTransaction } from '../../store/explain-transfers.ts';
import { findResolutions } from '../../store/transfer-desk.ts';
import { EXIT } from '../cli-error.ts';
import { readDeliveries, tellEvent } from './event-entries.ts';
import { type Explanation, shorten } from './explanation.ts';
import { tellSighting } from './invoice-entries.ts';
import type { Subject } from './read-subject.ts';
import { describeStand, readStand } from './stand.ts';
import { type ToldTransfer, tellOutgoing, tellTransfer } from './transfer-entries.ts';

type Transaction = Extract<Subject, { form: 'transaction' }>;

/** A multisend may pay hundreds; this many are told. */
const MAX_TRANSFERS = 50;
const MAX_EVENTS = 100;

/** Every transfer of ours in a transaction, on any network; `null` if there is none. */
export async function explainTransaction(
  db: Sql,
  subject: Transaction,
  projectId: string | null,
): Promise<Explanation | null> {
  const { txId } = subject;
  const found = await findTransfersOfTransaction(db, txId, projectId, MAX_TRANSFERS + 1);
  const left = await findOutgoingOfTransaction(db, txId, projectId, MAX_TRANSFERS + 1);
  const seen = await findSightingsOfTransaction(db, txId, projectId, MAX_TRANSFERS + 1);
  if (found.length + left.length + seen.length === 0) return null;
  const transfers = found.slice(0, MAX_TRANSFERS);
  const [outgoing, sightings] = [left.slice(0, MAX_TRANSFERS), seen.slice(0, MAX_TRANSFERS)];
  const ids = transfers.map(({ id }) => id);
  const unsettled = transfers.filter(({ kind }) => kind !== 'matched').map(({ id }) => id);
  const causes = await diagnoseTransfers(db, unsettled);
  const resolutions = await findResolutions(db, ids);
  const told = transfers.map((transfer) => ({
    transfer,
    causes: causes.get(transfer.id) ?? [],
    resolutions: resolutions.get(transfer.id) ?? [],
  }));
  const { events, deliveries } = await readDeliveries(db, await findEventsOfTransfers(db, ids, MAX_EVENTS));
  return {
    verdict: [
      ...told.slice(0, MAX_JUDGED).flatMap(judgeTransfer),
      ...sightings.slice(0, MAX_JUDGED).map(judgeSighting),
      ...outgoing.slice(0, MAX_JUDGED).map(judgeOutgoing),
      ...judgeRest(told.length + sightings.length + outgoing.length),
    ],
    ...describeTransaction(subject),
    timeline: [
      ...told.flatMap(tellTransfer),
      ...outgoing.map(tellOutgoing),
      ...sightings.map(tellSighting),
      ...events.flatMap(tellEvent),
    ],
    omissions: [
      ...[found, left, seen].map((all, index) => {
        const what = `${['incoming transfers', 'outgoing transfers', 'sightings'][index]} of the transaction, at least`;
        return { what, shown: Math.min(all.length, MAX_TRANSFERS), total: all.length };
      }),
      { what: 'deliveries of its events', ...deliveries },
    ],
    next: nextSteps(told, sightings),
  };
}

/** Sentences of a verdict for each kind of transfer. */
const MAX_JUDGED = 3;

function judgeTransfer({ transfer, causes, resolutions }: ToldTransfer): string[] {
  const { kind, invoice, address, amountMicro } = transfer;
  const came = `${formatAmount(amountMicro)} USDT came to ${address}`;
  const name = invoice === null ? '' : shorten(invoice.externalId, 60);
  if (kind === 'matched') return [`${came} and paid ${name}.`];
  const last = resolutions.at(-1);
  const resolved =
    last === undefined ? 'it is not resolved' : `${shorten(last.resolvedBy)} resolved it as ${last.resolution}`;
  if (kind === 'duplicate') return [`${came} and pays nothing, because ${name} was PAID before; ${resolved}.`];
  const [likeliest] = causes;
  return [
    `${came} and pays nothing, because no invoice reserves that amount there; ${resolved}.`,
    ...(likeliest === undefined ? [] : [`Likely (${likeliest.confidence}): ${likeliest.explanation}`]),
  ];
}

function judgeSighting({ amountMicro, externalId, blockNumber }: ExplainedSighting): string {
  const amount = formatAmount(microUsdt(amountMicro));
  return `${amount} USDT, exactly what ${shorten(externalId, 60)} waits for, stands in block ${blockNumber}. It is PAID as soon as that block is irreversible, normally within a minute or two.`;
}

function judgeOutgoing({ amountMicro, address, to }: ExplainedOutgoing): string {
  return `${formatAmount(amountMicro)} USDT left ${address} for ${to}.`;
}

function judgeRest(count: number): string[] {
  return count > MAX_JUDGED ? [`All ${count} transfers shown stand below.`] : [];
}

function nextSteps(told: readonly ToldTransfer[], sightings: readonly ExplainedSighting[]): string[] {
  const invoiceIds = [
    ...told.map(({ transfer }) => transfer.invoice?.id),
    ...sightings.map(({ invoiceId }) => invoiceId),
  ];
  const known = [...new Set(invoiceIds.filter((id) => id !== undefined))].slice(0, MAX_JUDGED);
  const open = told.find(({ transfer, resolutions }) => transfer.kind !== 'matched' && resolutions.length === 0);
  return [
    ...known.map((id) => `all about the invoice: quittance explain ${encodeId('inv', id)}`),
    ...(open === undefined
      ? []
      : [`when you have decided: quittance transfers resolve ${encodeId('trf', open.transfer.id)} --as …`]),
  ];
}

function describeTransaction({ txId, hasEthereumPrefix }: Transaction): Pick<Explanation, 'subject' | 'fields'> {
  return {
    subject: { form: 'transaction', txId, ...(hasEthereumPrefix ? { note: PREFIX_NOTE } : {}) },
    fields: [
      ['transaction', txId],
      ['note', hasEthereumPrefix ? PREFIX_NOTE : null],
    ],
  };
}

const PREFIX_NOTE = 'TRON writes transaction ids without 0x; with it, it may be a transaction of another chain';

/** What to do about a transaction that the ledger has nothing of, and up to where the ledger knows each chain. */
export async function explainUnknownTransaction(db: Sql, subject: Transaction): Promise<Explanation> {
  const now = unixMs(systemClock.now());
  const stands = [];
  for (const network of NETWORKS) stands.push(await readStand(db, network, now));
  const followed = stands.filter(({ cursor }) => cursor !== null);
  const troubles = followed.flatMap(({ trouble }) => (trouble === null ? [] : [`Mind that ${trouble}.`]));
  const { subject: described, fields } = describeTransaction(subject);
  return {
    verdict: [
      'The ledger has nothing of this transaction: no USDT transfer of it came to or left an address of yours.',
      ...troubles,
    ],
    subject: {
      ...described,
      ledger: followed.map(({ network, cursor }) => {
        return { network, recordedBlock: cursor?.solid.number, examinedBlock: cursor?.head.number };
      }),
    },
    fields: [
      ...fields,
      ...followed.map((stand) => ['ledger', describeStand(stand)] as const),
      ...(followed.length === 0 ? [['ledger', 'no network was examined yet'] as const] : []),
    ],
    timeline: [],
    omissions: [],
    next: [
      'look it up at tronscan.org (nile.tronscan.org for Nile); the link of the payer may be of another network',
      'is it there and successful, in USDT, and to one of your addresses? If not, it paid somebody else or nobody',
      'is its block above the blocks that are recorded here? Then wait; see "quittance chain status"',
      'is it below, and to an address that you had then? Then read its block again: quittance chain rescan --from <block> --to <block>',
    ],
    exitCode: EXIT.notFound,
  };
}
