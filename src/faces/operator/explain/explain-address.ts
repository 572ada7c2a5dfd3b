import type { AccountHex, TronAddress } from '@quittance/tron/address';
import { formatSigned } from '../../../core/chain/reconcile.ts';
import { encodeId } from '../../../core/domain/ids.ts';
import { INVOICE_STATUSES, type InvoiceStatus } from '../../../core/domain/invoice.ts';
import { say } from '../../../core/domain/message.ts';
import { formatAmount } from '../../../core/domain/money.ts';
import type { Network } from '../../../core/domain/network.ts';
import type { Policy } from '../../../core/domain/policy.ts';
import { toIso } from '../../../core/domain/time.ts';
import type { TimelineEntry } from '../../../core/domain/timeline.ts';
import { listOperatorActions } from '../../../core/store/access/audit-log.ts';
import { addressColumn } from '../../../core/store/db/address-column.ts';
import { ANY_NETWORK } from '../../../core/store/db/any-network.ts';
import type { Sql } from '../../../core/store/db/database.ts';
import { answerOf, rowsOf } from '../../../core/store/db/rows-of.ts';
import { count, listColumns, maybe, maybeText, type Row, text } from '../../../core/store/db/statement.ts';
import { type Freeze, lifeStatusOf } from '../../../core/store/ledger/addresses.ts';
import { notAnnulled, outgoingNotAnnulled } from '../../../core/store/ledger/annulments.ts';
import type { Actor } from '../actor.ts';
import { shorten } from '../input/problems.ts';
import { findTransfersFrom, findTransfersToAddress, type TransferRecord } from '../subjects/transfer-export.ts';
import type { Explanation } from './explanation.ts';
import { MAX_SHOWN, omit } from './facts.ts';
import { findOutgoingOfAddress, findOutgoingTo, MAX_COUNTED } from './statements.ts';
import { describeAction, describeAnnulment, describeOutgoing } from './timeline.ts';
import { first, judge, nameAddresses, SEARCHED, type Sentence, type Verdict } from './verdict.ts';

const addressShape = {
  id: 'uuid',
  projectId: 'uuid',
  projectName: 'text',
  network: text<Network>(),
  address: 'address',
  policy: text<Policy>(),
  position: 'int4',
  createdAt: 'timestamptz',
  retiredAt: 'timestamptz?',
  freezeState: maybeText<Freeze>(),
  derived: maybe({ xpub: 'text', index: 'int4' }),
  balance: maybe({
    chainMicro: 'numeric',
    expectedMicro: 'numeric',
    checkedBlock: count,
    goodBlock: count,
    node: 'text',
    checkedAt: 'timestamptz',
  }),
} as const;
/** One of our addresses with its origin and its last balance check. Ids are UUIDs. */
type ExplainedAddress = Row<typeof addressShape>;

const ADDRESS = listColumns(addressShape, 'a.', {
  ...{ projectName: 'p.name', address: addressColumn('a') },
  derived: { xpub: 'k.xpub', index: 'a.derivation_index' },
  balance: {
    ...{ chainMicro: 'b.balance_micro', expectedMicro: 'b.expected_micro', checkedBlock: 'b.checked_block' },
    ...{ goodBlock: 'b.good_block', node: 'b.node', checkedAt: 'b.checked_at' },
  },
});

/** Finds an account's addresses, at most one on each network. */
const findExplainedAddresses = rowsOf(
  'explain-address-select',
  addressShape,
  `select ${ADDRESS}
   from addresses a
   join projects p on p.id = a.project_id
   left join account_keys k on k.id = a.account_key_id
   left join balance_checks b on b.address_id = a.id
   where a.network in ${ANY_NETWORK} and a.account = decode($1, 'hex')
     and ($2::uuid[] is null or a.project_id = any($2))
   order by a.network`,
  (account: AccountHex, projects: Actor['projects']) => [account, projects],
);

/** Counts the invoices at an address by status, up to `limit`. */
const countInvoicesOfAddress = rowsOf(
  'explain-address-invoices',
  { status: text<InvoiceStatus>(), count },
  `select status, count(*) as count from (select status from invoices where address_id = $1 limit $2) i group by status`,
  (addressId: string, limit: number) => [addressId, limit],
);

/** Counts the transfers to and from an address above a block (-1 for all), up to `limit` for each direction. */
const countTransfersOfAddress = answerOf(
  'explain-address-transfers',
  { incoming: count, outgoing: count },
  `select
     (select count(*) from (
       select from transfers t where address_id = $1 and block_number > $3 and ${notAnnulled('t')} limit $2) t) as incoming,
     (select count(*) from (
       select from outgoing_transfers o where address_id = $1 and block_number > $3 and ${outgoingNotAnnulled('o')} limit $2) t) as outgoing`,
  (addressId: string, aboveBlock: number, limit: number) => [addressId, limit, aboveBlock],
  ([row]) => row ?? { incoming: 0, outgoing: 0 },
);

type Scope = { db: Sql; projects: Actor['projects'] };

/** Explains an address. Returns `null` for an address that the ledger doesn't know, or that is used on several networks. */
export async function explainAddress(
  scope: Scope,
  { address, account }: { address: TronAddress; account: AccountHex },
): Promise<Explanation | null> {
  const [own, ...others] = await findExplainedAddresses(scope.db, account, scope.projects);
  if (own === undefined) return explainStranger(scope, address);
  return others.length > 0 ? null : explainOwn(scope.db, own);
}

async function explainOwn(db: Sql, address: ExplainedAddress): Promise<Explanation> {
  const facts = await readAddressFacts(db, address);
  const { invoices, total, moved, actions } = facts;
  const { derived, policy, position, network } = address;
  const isAddingDescribed = actions.some(({ action }) => action === 'address.added' || action === 'address.derived');
  const projectId = encodeId('prj', address.projectId);
  const retiredAt = address.retiredAt === null ? null : toIso(address.retiredAt);
  const status = lifeStatusOf(address);
  const areAllInvoicesCounted = total <= MAX_COUNTED;
  const counted = Object.entries(invoices).map(([name, count]) => `${count} ${name}`);
  return {
    ...judgeAddress(facts),
    subject: {
      form: 'address',
      address: address.address,
      projectId,
      network,
      policy,
      status,
      retiredAt,
      position,
      derived,
      ...{ invoices, areAllInvoicesCounted },
      transfers: { ...moved, areAllCounted: Math.max(moved.incoming, moved.outgoing) <= MAX_COUNTED },
    },
    fields: [
      ['address', address.address],
      ['project', `${projectId} (${address.projectName}, ${network})`],
      ['policy', policy],
      ['state', retiredAt === null ? status : `retired since ${retiredAt}`],
      [
        'derived',
        derived &&
          `#${derived.index + 1} (index ${derived.index}) of the account key ${derived.xpub.slice(0, 12)}…${derived.xpub.slice(-6)}`,
      ],
      ['invoices', `${counted.join(', ')}${areAllInvoicesCounted ? '' : `, of the ${total} counted`}`],
      ['transfers', `${countUpTo(MAX_COUNTED, moved.incoming)} in, ${countUpTo(MAX_COUNTED, moved.outgoing)} out`],
    ],
    timeline: [
      ...(isAddingDescribed ? [] : [describeAdding(address)]),
      ...actions.map(describeAction),
      ...facts.incoming.map(describeIncoming),
      ...facts.outgoing.flatMap(describeOutgoing),
      ...describeBalance(address),
    ],
    omissions: facts.omissions,
  };
}

/** Reads everything that explains one of our addresses. */
async function readAddressFacts(db: Sql, address: ExplainedAddress) {
  const { id, projectId, balance } = address;
  const counts = await countInvoicesOfAddress(db, id, MAX_COUNTED + 1);
  const moved = await countTransfersOfAddress(db, id, -1, MAX_COUNTED + 1);
  const incoming = await findTransfersToAddress(db, id, MAX_SHOWN);
  const outgoing = await findOutgoingOfAddress(db, id, MAX_SHOWN);
  const all = (await listOperatorActions(db, address.address)).filter((action) => action.projectId === projectId);
  const actions = all.slice(-50);
  return {
    address,
    /** The number of invoices by status. A number of invoices or transfers above `MAX_COUNTED` only means "more than `MAX_COUNTED`". */
    invoices: Object.fromEntries(
      INVOICE_STATUSES.map((status) => [status, counts.find((each) => each.status === status)?.count ?? 0]),
    ),
    total: counts.reduce((sum, { count }) => sum + count, 0),
    moved,
    /** Transfers after the last comparison with the chain. */
    since: await countTransfersOfAddress(db, id, balance?.checkedBlock ?? -1, MAX_COUNTED + 1),
    ...{ incoming, outgoing, actions },
    omissions: [
      omit('operator actions', actions.length, all.length),
      omit('incoming transfers (the newest are shown)', incoming.length, moved.incoming),
      omit('outgoing transfers (the newest are shown)', outgoing.length, moved.outgoing),
    ],
  };
}

/** Judges one of our addresses: its state, its invoices and its last balance check. */
function judgeAddress({ address: own, total, since }: Awaited<ReturnType<typeof readAddressFacts>>): Verdict {
  const { address, projectName, network, policy, retiredAt, balance } = own;
  const state = {
    active: 'It is active.',
    frozen:
      'Tether has frozen it: it can still receive USDT, but cannot send any. It gets no new invoices, but it is still watched.',
    unfrozen: 'Tether froze it and later unfroze it. It gets invoices again when an operator activates it.',
    retired: `It has been retired since ${retiredAt === null ? 'never' : toIso(retiredAt)}: it gets no new invoices, but it is still watched.`,
    blocked: 'It is retired permanently.',
  }[lifeStatusOf(own)];
  const { incoming, outgoing } = since;
  // A balance check applies to one block; later transfers aren't in its figures.
  const moved = [
    ...(incoming === 0
      ? []
      : [`${countUpTo(MAX_COUNTED, incoming)} ${incoming === 1 ? 'transfer' : 'transfers'} arrived`]),
    ...(outgoing === 0 ? [] : [`${countUpTo(MAX_COUNTED, outgoing)} left`]),
  ];
  const after = moved.length === 0 ? '' : ` Since then, ${moved.join(' and ')}.`;
  const when =
    balance && `At the last comparison, at block ${balance.checkedBlock} (${toIso(balance.checkedAt)}), its balance`;
  const [onChain, inLedger] =
    balance === null ? [] : [formatSigned(balance.chainMicro), formatSigned(balance.expectedMicro)];
  return judge(
    `${address} is an address of ${shorten(projectName)} on ${network} with policy ${policy}. ${state}`,
    `It has ${countUpTo(MAX_COUNTED, total)} invoice${total === 1 ? '' : 's'}.`,
    first<Sentence>(
      balance === null && 'Its balance has not been compared with the chain yet.',
      onChain === inLedger && `${when} matched the ledger: ${onChain} USDT.${after}`,
      say`${when ?? ''} did NOT match the ledger: ${onChain ?? ''} USDT on the chain, ${inLedger ?? ''} in the ledger.${after} To compare them again, run "${{ command: 'reconcile', input: { address } }}".`,
    ),
  );
}

/** Describes how an address without a recorded action was created. */
function describeAdding({ createdAt: at, position, policy }: ExplainedAddress): TimelineEntry {
  const text = `address number ${position} of the project, policy ${policy}`;
  return { at, kind: 'added', text, details: ['the person who added it was not recorded'], data: { position, policy } };
}

function describeBalance({ balance }: ExplainedAddress): TimelineEntry[] {
  if (balance === null) return [];
  const { checkedAt: at, checkedBlock, goodBlock, node } = balance;
  const [onChain, expected] = [formatSigned(balance.chainMicro), formatSigned(balance.expectedMicro)];
  const text = `${onChain} USDT on the chain at block ${checkedBlock}, ${expected} in the ledger`;
  const details = [`the balance last matched at block ${goodBlock}; reported by the node ${node}`];
  return [{ at, kind: 'balance', text, details, data: { balance: onChain, expected, checkedBlock, goodBlock, node } }];
}

/** How many transfers to show for a stranger's address, newest first. */
const MAX_TRANSFERS = 20;

/** Explains an address that has paid us or that we have paid. Returns `null` if neither is the case. */
async function explainStranger({ db, projects }: Scope, address: TronAddress): Promise<Explanation | null> {
  const incoming = await findTransfersFrom(db, address, projects, MAX_TRANSFERS + 1);
  const outgoing = await findOutgoingTo(db, address, projects, MAX_TRANSFERS + 1);
  const [sent, got] = [incoming.length, outgoing.length];
  if (sent + got === 0) return null;
  return {
    ...judgeStranger(address, projects, { sent, got, limit: MAX_TRANSFERS }),
    subject: { form: 'address', address, projectId: null },
    fields: [['address', address]],
    timeline: [
      ...incoming.slice(0, MAX_TRANSFERS).toReversed().map(describeIncoming),
      ...outgoing.slice(0, MAX_TRANSFERS).flatMap(describeOutgoing),
    ],
    omissions: [
      omit('transfers from this address (there may be more; the newest are shown)', MAX_TRANSFERS, sent),
      omit('transfers to this address (there may be more; the newest are shown)', MAX_TRANSFERS, got),
    ],
  };
}

/** Judges a stranger's address that paid us or that we paid, with counts up to a limit. */
function judgeStranger(
  address: string,
  projects: Actor['projects'],
  { sent, got, limit }: { sent: number; got: number; limit: number },
): Verdict {
  const isOne = projects?.length === 1;
  const no = `${address} is not one of ${nameAddresses(projects)}.`;
  return judge(isOne ? say`${no} ${SEARCHED}` : no, [
    `It sent ${countUpTo(limit, sent)} ${sent === 1 ? 'transfer' : 'transfers'} to ${isOne ? "the project's" : 'your'} addresses, and received ${countUpTo(limit, got)} from them.`,
    { says: 'to see a transfer', hint: { command: 'explain', args: ['<transaction id>'] } },
  ]);
}

/** Describes an incoming transfer in one line. `quittance explain <txid>` shows everything about it. */
function describeIncoming(transfer: TransferRecord): TimelineEntry {
  const { txId, logIndex, from, kind, invoice, blockTime, blockNumber, address: to, annulment } = transfer;
  const amount = formatAmount(transfer.amountMicro);
  const decided = invoice === null ? kind : `${kind}: ${shorten(invoice.externalId)}`;
  const what = annulment === null ? decided : `${decided}; ${describeAnnulment(annulment)}`;
  return {
    ...{ at: blockTime, kind: 'transferred', text: `${amount} USDT from ${from} to ${to}, ${what}` },
    details: [`transaction ${txId}, log ${logIndex}`],
    data: {
      ...{ transferId: encodeId('trf', transfer.id), match: kind, isTakenBack: annulment !== null },
      ...{ txId, logIndex, blockNumber, from, to, amount, invoiceId: invoice && encodeId('inv', invoice.id) },
      externalId: invoice?.externalId ?? null,
    },
  };
}

/** Counting stops just above the limit, so a count above it only means "more than the limit". */
const countUpTo = (limit: number, count: number) => (count > limit ? `more than ${limit}` : String(count));
