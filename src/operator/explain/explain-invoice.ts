import { encodeId } from '../../domain/ids.ts';
import { readOptions } from '../../domain/invoice-options.ts';
import { formatAmount, microUsdt } from '../../domain/money.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import { listOperatorActions } from '../../store/access/audit-log.ts';
import type { Sql } from '../../store/db/database.ts';
import { describeAction } from './describe-action.ts';
import { describeEvent } from './event-entries.ts';
import type { Explanation } from './explanation.ts';
import { describeCreation, describeStatuses } from './invoice-entries.ts';
import { type InvoiceFacts, readInvoiceFacts } from './invoice-facts.ts';
import { findExplainedInvoice, type LocatedInvoice } from './invoice-queries.ts';
import { judgeInvoice, openTransfers } from './judge-invoice.ts';
import { describeStand, ledgerOf } from './stand.ts';
import { describeTransfer, hintResolve } from './transfer-entries.ts';

const MAX_ACTIONS = 20;

/** Everything about one invoice. `now` decides whether the ledger lags behind. */
export async function explainInvoice(db: Sql, located: LocatedInvoice, now: UnixMs): Promise<Explanation> {
  const invoice = await findExplainedInvoice(db, located.projectId, located.id);
  if (invoice === null) throw new Error(`invoice ${located.id} is gone, though invoices are never deleted`);
  const facts = await readInvoiceFacts(db, invoice, now);
  const made = await listOperatorActions(db, encodeId('inv', invoice.id));
  const actions = [...made, ...(await listOperatorActions(db, invoice.address))]
    .filter(({ projectId, actedAt }) => projectId === invoice.projectId && actedAt >= invoice.createdAt)
    .slice(-MAX_ACTIONS);
  return {
    verdict: judgeInvoice(facts),
    ...describeInvoice(facts),
    timeline: [
      ...describeCreation(invoice),
      ...actions.map(describeAction),
      ...describeStatuses(facts),
      ...[...facts.exact, ...facts.near].flatMap(describeTransfer),
      ...[...facts.events, ...facts.transferEvents].flatMap(describeEvent),
    ],
    omissions: facts.omissions,
    next: openTransfers(facts).map(hintResolve),
  };
}

function describeInvoice({ invoice, stand }: InvoiceFacts): Pick<Explanation, 'subject' | 'fields'> {
  const { address, policy, retiredAt, requestedMicro, payableMicro, status } = invoice;
  const [invoiceId, projectId] = [encodeId('inv', invoice.id), encodeId('prj', invoice.projectId)];
  const [requestedAmount, payableAmount] = [formatAmount(requestedMicro), formatAmount(payableMicro)];
  const tail = formatAmount(microUsdt(payableMicro - requestedMicro));
  const sum =
    payableMicro === requestedMicro ? 'what was asked for' : `${requestedAmount} asked for, and a tail of ${tail}`;
  const { description, returnUrl, metadata } = readOptions(invoice.options);
  const retired = retiredAt === null ? '' : `; retired since ${toIso(retiredAt)}, and watched for ever`;
  return {
    subject: {
      form: 'invoice',
      invoiceId,
      externalId: invoice.externalId,
      projectId,
      network: invoice.network,
      status,
      requestedAmount,
      payableAmount,
      address,
      policy,
      createdAt: toIso(invoice.createdAt),
      expiresAt: toIso(invoice.expiresAt),
      ledger: ledgerOf(stand),
    },
    fields: [
      ['invoice', invoiceId],
      ['external id', invoice.externalId],
      ['project', `${projectId} (${invoice.projectName}, ${invoice.network})`],
      ['status', status],
      ['to pay', `${payableAmount} USDT (${sum})`],
      ['to', `${address} (policy ${policy}${retired})`],
      ['until', `${toIso(invoice.expiresAt)}; a later payment counts all the same`],
      ...(description === undefined ? [] : [['for', description] as const]),
      ...(returnUrl === undefined ? [] : [['leads back to', returnUrl] as const]),
      ...Object.entries(metadata ?? {}).map(([name, value]) => [`metadata ${name}`, value] as const),
      ['ledger', describeStand(stand)],
    ],
  };
}
