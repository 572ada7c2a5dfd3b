import { formatSigned } from '../../chain/reconcile/reconcile-address.ts';
import { encodeId } from '../../domain/ids.ts';
import { INVOICE_STATUSES } from '../../domain/invoice.ts';
import { say, type Text } from '../../domain/message.ts';
import { formatAmount } from '../../domain/money.ts';
import { toIso } from '../../domain/time.ts';
import type { TimelineEntry } from '../../domain/timeline.ts';
import { listOperatorActions } from '../../store/access/audit-log.ts';
import type { Sql } from '../../store/db/database.ts';
import { lifeStatusOf } from '../../store/ledger/addresses.ts';
import type { Actor } from '../actor.ts';
import { shorten } from '../input/clip.ts';
import { findTransfersFrom, findTransfersToAddress, type TransferRecord } from '../subjects/transfer-records.ts';
import {
  countInvoicesOfAddress,
  countTransfersOfAddress,
  type ExplainedAddress,
  findExplainedAddresses,
  findOutgoingOfAddress,
  findOutgoingTo,
} from './address-queries.ts';
import { MAX_COUNTED } from './candidate-queries.ts';
import { describeAction } from './describe-action.ts';
import { type Explanation, nameProjects, SEARCHED } from './explanation.ts';
import type { Subject } from './read-subject.ts';
import { describeAnnulment, describeOutgoing } from './transfer-entries.ts';

type Address = Extract<Subject, { form: 'address' }>;

/** The newest ones are told. */
const MAX_TRANSFERS = 20;
const MAX_ACTIONS = 50;

/** An address of ours, or one that paid us or was paid by us; `null` if it is neither, or of several networks. */
export async function explainAddress(
  db: Sql,
  subject: Address,
  projects: Actor['projects'],
): Promise<Explanation | null> {
  const [address, ...others] = await findExplainedAddresses(db, subject.account, projects);
  if (address === undefined) return explainStranger(db, subject, projects);
  return others.length > 0 ? null : explainOwn(db, address);
}

async function explainOwn(db: Sql, address: ExplainedAddress): Promise<Explanation> {
  const counts = await countInvoicesOfAddress(db, address.id, MAX_COUNTED + 1);
  const total = counts.reduce((sum, { count }) => sum + count, 0);
  const moved = await countTransfersOfAddress(db, address.id, -1, MAX_COUNTED + 1);
  const checkedBlock = address.balance?.checkedBlock ?? -1;
  const since = await countTransfersOfAddress(db, address.id, checkedBlock, MAX_COUNTED + 1);
  const incoming = await findTransfersToAddress(db, address.id, MAX_TRANSFERS);
  const outgoing = await findOutgoingOfAddress(db, address.id, MAX_TRANSFERS);
  const all = (await listOperatorActions(db, address.address)).filter(
    ({ projectId }) => projectId === address.projectId,
  );
  const actions = all.slice(-MAX_ACTIONS);
  const isAddingDescribed = actions.some(({ action }) => action === 'address.added' || action === 'address.derived');
  const invoices = Object.fromEntries(
    INVOICE_STATUSES.map((status) => [status, counts.find((each) => each.status === status)?.count ?? 0]),
  );
  return {
    verdict: judge(address, total, since),
    ...describe(address, invoices, { total, moved }),
    timeline: [
      ...(isAddingDescribed ? [] : [describeAdding(address)]),
      ...actions.map(describeAction),
      ...incoming.map(describeIncoming),
      ...outgoing.flatMap(describeOutgoing),
      ...describeBalance(address),
    ],
    omissions: [
      { what: 'actions of operators', shown: actions.length, total: all.length },
      { what: 'incoming transfers, the newest of which are shown', shown: incoming.length, total: moved.incoming },
      { what: 'outgoing transfers, the newest of which are shown', shown: outgoing.length, total: moved.outgoing },
    ],
    next: [],
  };
}

type Moved = { incoming: number; outgoing: number };

function judge(address: ExplainedAddress, total: number, since: Moved): Text[] {
  const { projectName, network, policy, retiredAt } = address;
  const state = {
    active: 'in use',
    frozen: 'frozen by Tether: it still receives and cannot send, takes no new invoices, and is watched for ever',
    unfrozen: 'frozen by Tether once, and not any more: it takes invoices again when somebody activates it',
    retired: `retired since ${retiredAt === null ? 'never' : toIso(retiredAt)}: it takes no new invoices, and is watched for ever`,
    blocked: 'retired for good',
  }[lifeStatusOf(address)];
  return [
    `${address.address} is an address of ${shorten(projectName)} on ${network}, of policy ${policy}, ${state}.`,
    `It has ${atLeast(total)} invoice${total === 1 ? '' : 's'}.`,
    judgeBooks(address, since),
  ];
}

/** A comparison is of its block: what moved after it is not in its figures. */
function judgeBooks({ address, balance }: ExplainedAddress, { incoming, outgoing }: Moved): Text {
  if (balance === null) return 'Its balance was not compared with the chain yet.';
  const { chainMicro, expectedMicro, checkedBlock, checkedAt } = balance;
  const when = `At the last comparison, at block ${checkedBlock} (${toIso(checkedAt)}), its balance was`;
  const moved = [
    ...(incoming === 0 ? [] : [`${atLeast(incoming)} ${incoming === 1 ? 'transfer' : 'transfers'} came`]),
    ...(outgoing === 0 ? [] : [`${atLeast(outgoing)} left`]),
  ];
  const after = moved.length === 0 ? '' : ` Since then ${moved.join(' and ')}.`;
  if (chainMicro === expectedMicro) {
    return `${when} what the ledger said: ${formatSigned(chainMicro)} USDT.${after}`;
  }
  return say`${when} NOT what the ledger said: ${formatSigned(chainMicro)} USDT on the chain, ${formatSigned(expectedMicro)} in the ledger.${after} "${{ command: 'reconcile', input: { address } }}" looks again.`;
}

/** A count above the limit means only that there are more. */
function atLeast(count: number): string {
  return count > MAX_COUNTED ? `more than ${MAX_COUNTED}` : String(count);
}

function describe(
  address: ExplainedAddress,
  invoices: Record<string, number>,
  { total, moved }: { total: number; moved: Moved },
): Pick<Explanation, 'subject' | 'fields'> {
  const { derived, retiredAt, policy, position, network } = address;
  const projectId = encodeId('prj', address.projectId);
  const isCapped = total > MAX_COUNTED;
  const shown = Object.entries(invoices).map(([status, count]) => `${count} ${status}`);
  return {
    subject: {
      form: 'address',
      address: address.address,
      projectId,
      network,
      policy,
      status: lifeStatusOf(address),
      retiredAt: retiredAt === null ? null : toIso(retiredAt),
      position,
      derived,
      invoices,
      areAllInvoicesCounted: !isCapped,
      transfers: { ...moved, areAllCounted: Math.max(moved.incoming, moved.outgoing) <= MAX_COUNTED },
    },
    fields: [
      ['address', address.address],
      ['project', `${projectId} (${address.projectName}, ${network})`],
      ['policy', policy],
      ['state', retiredAt === null ? lifeStatusOf(address) : `retired since ${toIso(retiredAt)}`],
      [
        'derived',
        derived &&
          `#${derived.index + 1} (index ${derived.index}) of the account key ${derived.xpub.slice(0, 12)}…${derived.xpub.slice(-6)}`,
      ],
      ['invoices', `${shown.join(', ')}${isCapped ? `, of the ${total} that were counted` : ''}`],
      ['transfers', `${atLeast(moved.incoming)} in, ${atLeast(moved.outgoing)} out`],
    ],
  };
}

function describeAdding({ createdAt, position, policy }: ExplainedAddress): TimelineEntry {
  return {
    at: createdAt,
    kind: 'added',
    text: `number ${position} of the project's addresses, policy ${policy}`,
    details: ['by whom is not known: it was not noted'],
    data: { position, policy },
  };
}

/** In one line: `quittance explain <txid>` tells the rest. */
function describeIncoming(transfer: TransferRecord): TimelineEntry {
  const { txId, logIndex, from, kind, invoice, blockTime, blockNumber, address } = transfer;
  const amount = formatAmount(transfer.amountMicro);
  const decided = invoice === null ? kind : `${kind}: ${shorten(invoice.externalId)}`;
  const what = transfer.annulment === null ? decided : `${decided}; ${describeAnnulment(transfer.annulment)}`;
  return {
    at: blockTime,
    kind: 'transferred',
    text: `${amount} USDT from ${from} to ${address}, ${what}`,
    details: [`transaction ${txId}, log ${logIndex}`],
    data: {
      transferId: encodeId('trf', transfer.id),
      match: kind,
      isTakenBack: transfer.annulment !== null,
      txId,
      logIndex,
      blockNumber,
      from,
      to: address,
      amount,
      invoiceId: invoice && encodeId('inv', invoice.id),
      externalId: invoice?.externalId ?? null,
    },
  };
}

function describeBalance({ balance }: ExplainedAddress): TimelineEntry[] {
  if (balance === null) return [];
  const { checkedAt, checkedBlock, goodBlock, node } = balance;
  const [onChain, inLedger] = [formatSigned(balance.chainMicro), formatSigned(balance.expectedMicro)];
  return [
    {
      at: checkedAt,
      kind: 'balance',
      text: `${onChain} USDT on the chain at block ${checkedBlock}, ${inLedger} in the ledger`,
      details: [`they were last equal at block ${goodBlock}; ${node} was asked`],
      data: { balance: onChain, expected: inLedger, checkedBlock, goodBlock, node },
    },
  ];
}

async function explainStranger(db: Sql, subject: Address, projects: Actor['projects']): Promise<Explanation | null> {
  const { address } = subject;
  const incoming = await findTransfersFrom(db, address, projects, MAX_TRANSFERS + 1);
  const outgoing = await findOutgoingTo(db, address, projects, MAX_TRANSFERS + 1);
  if (incoming.length + outgoing.length === 0) return null;
  const [sent, received] = [incoming.length, outgoing.length].map((count) => {
    return count > MAX_TRANSFERS ? `more than ${MAX_TRANSFERS}` : String(count);
  });
  return {
    verdict: [
      projects?.length === 1
        ? say`${address} is no address of ${nameProjects(projects)}; without ${{ field: 'projectId' }} ${SEARCHED}.`
        : `${address} is no address of ${nameProjects(projects)}.`,
      `It sent ${sent} transfers to ${projects?.length === 1 ? "the project's" : 'yours'}, and got ${received} from them.`,
    ],
    subject: { form: 'address', address, projectId: null },
    fields: [['address', address]],
    timeline: [
      ...incoming.slice(0, MAX_TRANSFERS).toReversed().map(describeIncoming),
      ...outgoing.slice(0, MAX_TRANSFERS).flatMap(describeOutgoing),
    ],
    omissions: [incoming, outgoing].map((list, index) => {
      const what = `transfers ${index === 0 ? 'from' : 'to'} it, at least; the newest are shown`;
      return { what, shown: Math.min(list.length, MAX_TRANSFERS), total: list.length };
    }),
    next: [{ says: 'all about one of them', hint: { command: 'explain', args: ['<transaction id>'] } }],
  };
}
