import { say, type Text } from './message.ts';

type AlarmRow = {
  /**
   * Who can see the alarm. `network`: everyone who can see a project on that network. `project`: the alarm is about a project or a part of
   * one, and there may be many such alarms. `installation`: only people who can see all projects.
   */
  scope: 'network' | 'project' | 'installation';
  /** Rank 1, the default, means that payments are stopped or money is at risk. Rank 2 means that the alarm waits for a person. */
  rank?: 1 | 2;
  /**
   * Whether the alarm is also sent in quiet hours, because every hour may cost money, or because someone is tampering with the database. The
   * default is `false`.
   */
  isUrgent?: boolean;
  /** Whether no blocks are recorded while the alarm is open. */
  holdsBlocks?: true;
  /**
   * `cause`, the default: the alarm closes when its cause is gone. `operator`: the alarm reports a single event, so an operator closes it
   * after reading it.
   */
  endsBy?: 'cause' | 'operator';
  /** What happened. */
  means: string;
  /** The things that are stopped or threatened while the alarm is open. */
  impact: string;
  /** What to do, and in some cases what closes the alarm. */
  advice: Text;
};

/**
 * Declares every alarm for operators. docs/reference/alarms.md is generated from this list. The Prometheus rules `QuittanceAlarmUrgent` and
 * `QuittanceAlarmOpen` cover every kind that has no rule of its own, so add urgent kinds to both.
 */
const ROWS = {
  // Alarms about whether the chain is visible.
  blind: {
    means: 'For three block times, no node has responded, or none has returned a newer block.',
    impact:
      "Payments aren't confirmed, and invoices don't expire. Invoices can still be created, and no payment is lost.",
    scope: 'network',
    isUrgent: true,
    holdsBlocks: true,
    advice:
      'Check the nodes, and add a node if they stay down. You can still create invoices. No invoice expires, and no payment is lost. The alarm clears with the next new block.',
  },
  halted: {
    means: 'The chain contradicts an irreversible block in the ledger, so the watcher stopped.',
    impact: 'No payment on this network is confirmed until you decide. Invoices can still be created.',
    scope: 'network',
    isUrgent: true,
    advice: say`Find out whether the ledger or the chain is right. When you have resolved it, run "${{ command: 'chain resume' }}".`,
  },
  'unverifiable-block': {
    means: "Quittance can't verify a block, so it holds that block and all later blocks.",
    impact: 'No payment on this network is confirmed until the block is proven or you accept it.',
    scope: 'network',
    isUrgent: true,
    holdsBlocks: true,
    advice: say`Follow the instructions in the alarm. If one node keeps returning wrong blocks, replace that node. If no node can prove the block and you have checked it in a block explorer, run "${{ command: 'chain pass', input: { block: '…', reason: '…' } }}".`,
  },
  'nodes-disagree': {
    means: 'Operators return different USDT logs for a block, or too few of them return any.',
    impact: 'Quittance holds that block and all later blocks until enough operators agree.',
    scope: 'network',
    isUrgent: true,
    holdsBlocks: true,
    advice:
      'One operator is wrong or does not respond: repair its node, or add a node from a third operator. The alarm clears when enough operators agree.',
  },
  'producers-refused': {
    means: 'Operators disagree about the block producers, or too many producers changed at once.',
    impact: "Quittance can't verify blocks from new producers, so confirmations may stop.",
    scope: 'network',
    isUrgent: true,
    holdsBlocks: true,
    advice: say`Check the block producers in a block explorer. If that many producers really changed, run "${{ command: 'chain producers', input: { accept: true } }}".`,
  },
  'not-solid': {
    means: "A node reports blocks as irreversible, but by Quittance's own count they aren't.",
    impact: 'No payment on this network is confirmed.',
    scope: 'network',
    isUrgent: true,
    holdsBlocks: true,
    advice:
      'The node follows a different chain, or the known block producers are outdated. Check the chain and the producers in a block explorer.',
  },
  // Alarms about actions by Tether's contract.
  'contract-event': {
    means: "Tether's contract announced a fee or a successor.",
    impact: 'Payments may arrive with different amounts, or may move to another contract.',
    scope: 'network',
    endsBy: 'operator',
    advice: "Read Tether's announcement.",
  },
  'contract-paused': {
    means: 'Tether paused all USDT transfers.',
    impact: 'Payments fail and cost payers a fee.',
    scope: 'network',
    isUrgent: true,
    advice:
      'Wait for Tether. Payment pages tell payers not to send anything. The alarm clears when Tether resumes transfers.',
  },
  'address-frozen': {
    means: 'Tether froze one of your addresses.',
    impact: "It can still receive USDT but can't send any. New invoices use other addresses.",
    scope: 'installation',
    isUrgent: true,
    advice: say`Ask Tether why. The address gets no new invoices. When Tether has unfrozen it, activate it with "${{ command: 'address activate' }}".`,
  },
  'funds-destroyed': {
    means: 'Tether destroyed all money on a frozen address.',
    impact: 'The money is gone. The alarm shows the address, the amount and the transaction.',
    scope: 'installation',
    isUrgent: true,
    endsBy: 'operator',
    advice: 'Ask Tether. The ledger records the money as sent to no one, so the books still balance.',
  },
  // Alarms about the chain's records.
  'unproven-block': {
    means: 'No node returned the exact bytes of a block, so Quittance relied on operators to report its transfers.',
    impact: 'Colluding operators could have invented these transfers.',
    scope: 'network',
    endsBy: 'operator',
    advice:
      'Only node operators confirm these transfers. Connect a node over gRPC, because it returns the bytes that prove a block.',
  },
  'payment-denied': {
    means: "The payment for a PAID invoice isn't on the chain.",
    impact: "Your shop may have shipped an order that wasn't paid.",
    scope: 'installation',
    isUrgent: true,
    endsBy: 'operator',
    advice: "The invoice stays PAID although this payment isn't on the chain. Tell your shop.",
  },
  'set-aside': {
    means: "Quittance can't record a payment or expire an order, because a row fails its check.",
    impact: 'That payment or order is set aside. All other orders continue.',
    scope: 'installation',
    isUrgent: true,
    advice:
      'Repair the row shown in the alarm, or restore it from a backup. Quittance records the payment within minutes of the repair.',
  },
  'balance-differs': {
    means: "An address's on-chain balance differs from the ledger.",
    impact: "A transfer is missing from the ledger, or the ledger has a transfer that isn't on the chain.",
    scope: 'installation',
    isUrgent: true,
    advice:
      'Run the repair command shown in the alarm. It first shows the differences and changes nothing without your consent. If there are no differences, money moved without a log: report this to the Quittance project.',
  },
  // Alarms about the database and its backups.
  'database-restored': {
    means: 'A backup was restored.',
    impact: 'Invoices created after that backup are unknown, and new invoices need new addresses.',
    scope: 'network',
    endsBy: 'operator',
    advice:
      'Add new addresses. If you revoked keys after the backup, revoke them again. Check users, admin keys, webhook endpoints and fixed rates, because they are as they were at the time of the backup.',
  },
  'database-promoted': {
    means: 'The database server was promoted, or recovered to an earlier moment.',
    impact: 'After a failover to an asynchronous standby, the newest invoices may be missing.',
    scope: 'network',
    endsBy: 'operator',
    advice:
      'After a failover to a synchronous standby, nothing is lost. After any other failover, follow the instructions in the alarm. Then close it.',
  },
  'database-full': {
    means: 'PostgreSQL is running out of disk space, memory or connections.',
    impact: 'Quittance may not create invoices or record payments until resources are free again.',
    scope: 'network',
    advice:
      'Free disk space on the PostgreSQL server, or raise the limit shown in the alarm. The alarm clears within 30 seconds.',
  },
  'backup-failed': {
    means: "A scheduled backup wasn't created, or isn't valid.",
    impact: 'A restore would lose everything since the newest good backup.',
    scope: 'installation',
    advice:
      'Follow the instructions in the alarm. Quittance retries after ten minutes and keeps the existing backups. The alarm clears with the next good backup.',
  },
  'backup-old': {
    means: 'The newest verified backup is too old, or none exists.',
    impact: 'A restore would lose everything since that backup.',
    scope: 'installation',
    advice: 'The log and the alarm backup-failed give the reason. The alarm clears with the next good backup.',
  },
  // Alarms about addresses.
  'address-damaged': {
    means: "The text of an address doesn't match its account.",
    impact: 'Payment pages with this address tell payers not to pay. Payments to it are set aside until the repair.',
    scope: 'installation',
    isUrgent: true,
    advice:
      'Someone changed the database. Quittance shows the address to no one, and sets aside payments to it until the repair.',
  },
  'address-not-vouched': {
    means: "An address in use isn't in the signed manifest, or the manifest can't be used.",
    impact:
      'With QUITTANCE_MANIFEST_MODE=enforce, Quittance shows the address to no one, and sets aside payments to it until you sign the address.',
    scope: 'installation',
    isUrgent: true,
    advice: say`If the address is yours, sign and install a manifest that contains it: "${{ command: 'manifest draft' }}" shows what is missing. If it isn't, someone wrote to the database.`,
  },
  'address-change-pending': {
    means: 'Someone added addresses in the console or with an admin key.',
    impact: 'New invoices use them when another owner confirms, or after 24 hours.',
    scope: 'installation',
    isUrgent: true,
    advice: say`Review the pending addresses, and withdraw any that are not yours: "${{ command: 'address pending' }}".`,
  },
  'address-change-failed': {
    means: "Pending addresses couldn't be added.",
    impact: "The project doesn't have these addresses.",
    scope: 'project',
    rank: 2,
    endsBy: 'operator',
    advice: say`No address was added. To see why, run "${{ command: 'address pending' }}", then add the correct addresses again.`,
  },
  // Alarms about writes to the database that bypass Quittance.
  'schema-changed': {
    means: 'A table, constraint, index, trigger or function differs from this release.',
    impact: 'A protection in the database may be disabled. No process starts on this database.',
    scope: 'network',
    isUrgent: true,
    advice:
      'Someone changed the tables, so their protections may no longer work. The alarm clears within a minute of the repair.',
  },
  'row-changed': {
    means: "A row doesn't match its seal, or has no seal.",
    impact: "With QUITTANCE_ROW_MACS=require, Quittance doesn't use or show the row. With warn, it does.",
    scope: 'installation',
    isUrgent: true,
    endsBy: 'operator',
    advice: "Someone wrote directly to the database. Don't trust this row.",
  },
  'row-unsealed': {
    means: 'Rows in a table have no seal.',
    impact: "Quittance can't check these rows for changes.",
    scope: 'installation',
    endsBy: 'operator',
    advice: say`Rows from an older release have no seal. Compare the ledger with the chain and your wallet, then seal them: "${{ command: 'ledger seal' }}". If the rows aren't old, someone inserted them.`,
  },
  'key-unknown': {
    means: "Rows were sealed with a master key that this process doesn't have.",
    impact: "This process can't check these rows.",
    scope: 'installation',
    isUrgent: true,
    endsBy: 'operator',
    advice:
      'Give every process the same master keys. If all of them have the right keys, someone forged a seal in the database.',
  },
  'rows-missing': {
    means: 'Rows are missing, or the end of the row inventory was removed.',
    impact: 'Invoices, payments, events or settings may be lost.',
    scope: 'installation',
    isUrgent: true,
    endsBy: 'operator',
    advice: say`Someone deleted rows directly in the database, or reset it to an earlier state. Restore the rows, or accept the loss: "${{ command: 'ledger seal', input: { accept: 'TABLE:ID' } }}". The alarm clears when every row is back or accepted.`,
  },
  'audit-broken': {
    means: 'The audit log was changed after it was written.',
    impact: 'Someone may have hidden an action.',
    scope: 'installation',
    isUrgent: true,
    endsBy: 'operator',
    advice: say`Someone changed or truncated the audit log. Find out who did this, and which action they wanted to hide. "${{ command: 'audit verify' }}" shows the affected entry.`,
  },
  'alarms-silenced': {
    means: 'Someone marked alarms as resolved directly in the database.',
    impact: 'Quittance still lists them, because it seals the end of each alarm.',
    scope: 'network',
    isUrgent: true,
    advice:
      'Someone with access to the database is hiding alarms. Quittance lists the hidden alarms again: handle those first. This alarm clears a day after the last attempt.',
  },
  'watch-stalled': {
    means: 'A check, a background loop, a lease renewal or webhook delivery has stopped working in one process.',
    impact: 'Tampering may go unnoticed, or payments, messages or deliveries may be delayed.',
    scope: 'network',
    isUrgent: true,
    advice:
      'Read the log of that process for the cause. Someone may have written something to the database that makes the check fail. If the log says nothing, restart the process. The alarm clears after the next successful check.',
  },
  'secret-damaged': {
    means: "A webhook endpoint's secret, or the receipt key, can't be decrypted.",
    impact: "Its webhooks aren't sent, or receipts have no signature.",
    scope: 'project',
    rank: 2,
    isUrgent: true,
    advice: say`Find out who wrote to the database. Restore the row or the master key, or create a new secret: "${{ command: 'webhook rotate' }}". Until you do, Quittance keeps the events.`,
  },
  // Alarms about shops and their receivers.
  'capacity-low': {
    means: 'A project has few free payable amounts left for a price, or an invoice was rejected.',
    impact: 'Orders for that price will be rejected.',
    scope: 'project',
    rank: 2,
    advice: say`Add addresses: "${{ command: 'address add' }}".`,
  },
  'order-flood': {
    means: 'A project has as many unpaid invoices as its limits allow.',
    impact: 'Quittance rejects further orders with 429 TOO_MANY_UNPAID.',
    scope: 'project',
    rank: 2,
    advice: say`Look at the newest orders. If you are running a sale, raise the limits: "${{ command: 'project update' }}". If someone is flooding the shop, limit the orders per visitor in the shop. The alarm clears when half of both limits is free.`,
  },
  'webhook-failing': {
    means:
      "All attempts to reach a webhook endpoint, or to report a paid order to an adapter's shop, have failed for 15 minutes.",
    impact: "The shop isn't notified of payments. Quittance keeps its events and retries.",
    scope: 'project',
    rank: 2,
    advice: say`Find out what is wrong with the receiver: "${{ command: 'webhook test' }}", or for an adapter "${{ command: 'deliveries show' }}". If the subject ends in "given up", Quittance has stopped trying: send the callbacks again with "${{ command: 'deliveries replay' }}". The alarm clears when the receiver accepts an event, or for an adapter, when no callback of a paid order fails. The alarm clears for callbacks that Quittance gave up when you send them again, or after 7 days.`,
  },
  'webhook-disabled': {
    means: 'A webhook endpoint returned 410, or failed for five days, so it is disabled.',
    impact: 'Quittance no longer sends events to it.',
    scope: 'project',
    rank: 2,
    advice: say`Repair the receiver, then run "${{ command: 'webhook enable' }}", which clears the alarm.`,
  },
  'rate-old': {
    means: "An adapter's rate source has stopped returning new rates.",
    impact: 'When the rate gets too old, the adapter will refuse orders.',
    scope: 'project',
    isUrgent: true,
    advice: say`Repair the rate source, or set a different source or a fixed rate: "${{ command: 'adapter enable' }}". The alarm clears with a newer rate.`,
  },
  'notify-failing': {
    means: "Messages don't reach a notification channel.",
    impact: "The recipients of this channel aren't notified of alarms.",
    scope: 'project',
    rank: 2,
    advice: say`Find out why with "${{ command: 'notify test' }}", or remove the channel with "${{ command: 'notify remove' }}". The alarm clears with the first message that arrives.`,
  },
  // Alarms about processes.
  'network-unwatched': {
    means: 'A network has active addresses, but no watcher.',
    impact: "Quittance doesn't see payments on this network until a watcher runs and catches up.",
    scope: 'network',
    advice:
      "Start a watcher for the network. If you no longer use the network, retire its projects' addresses. The alarm clears when a watcher is running.",
  },
  'clock-wrong': {
    means: 'The clocks of a process, the database and the chain differ by 30 seconds or more.',
    impact: 'If the process and the database differ by more than a minute, Quittance creates no invoices.',
    scope: 'network',
    advice:
      "Correct the machines' clocks, and keep them synchronised with chrony or systemd-timesyncd. The alarm clears within seconds.",
  },
} as const satisfies Record<string, AlarmRow>;

export type AlarmKind = keyof typeof ROWS;

const DEFAULTS = { rank: 1, isUrgent: false, endsBy: 'cause' } as const;

type WholeRow = AlarmRow & Required<Pick<AlarmRow, keyof typeof DEFAULTS>>;

export const ALARM_KINDS = Object.keys(ROWS) as readonly AlarmKind[];

export const ALARMS = Object.fromEntries(ALARM_KINDS.map((kind) => [kind, { ...DEFAULTS, ...ROWS[kind] }])) as Readonly<
  Record<AlarmKind, WholeRow>
>;

/** Returns the row for a kind. The database may contain alarms from a newer release, with kinds that this release doesn't know. */
export function alarmRow(kind: string): WholeRow {
  return Object.hasOwn(ALARMS, kind) ? ALARMS[kind as AlarmKind] : UNKNOWN;
}

/** Returns what to do about an alarm, and where to read more. */
export function adviceOn(kind: string): Text {
  return say`${alarmRow(kind).advice} See docs/reference/alarms.md#${kind}.`;
}

const UNKNOWN: WholeRow = {
  ...DEFAULTS,
  scope: 'installation',
  means: 'A newer release raised this alarm.',
  impact: 'Only that release knows its impact.',
  advice: 'Upgrade this process.',
};
