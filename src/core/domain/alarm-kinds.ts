import { say, type Text } from './message.ts';

type AlarmRow = {
  /**
   * Who can see the alarm. `network`: everyone who can see a project of that network. `project`: its subject is a project or a part of one,
   * and there may be many such alarms. `installation`: only people who can see all projects.
   */
  scope: 'network' | 'project' | 'installation';
  /** 1: the alarm is about something that stops or threatens money. 2: it waits for a person. */
  rank: 1 | 2;
  /**
   * Whether the alarm is also sent in quiet hours, because every hour may cost money, or because someone is tampering with the database.
   */
  isUrgent: boolean;
  /** Whether no blocks are recorded while the alarm is open. */
  holdsBlocks?: true;
  /** `cause`: the alarm closes when its cause is gone. `operator`: it reports a single event, so it closes when an operator has read it. */
  endsBy: 'cause' | 'operator';
  /** What happened. */
  means: string;
  /** What is stopped or threatened while the alarm is open. */
  impact: string;
  /** What to do, and in some cases what closes the alarm. */
  advice: Text;
};

/**
 * Declares every alarm for operators. A new kind needs a row here and a Prometheus rule; docs/reference/alarms.md is generated from this
 * list.
 */
const ROWS = {
  // Alarms about whether the chain is visible.
  blind: {
    means: 'For three block times no node has answered, or none has shown a newer block.',
    impact: 'Nothing is confirmed and nothing expires. Invoices can still be created, and no payment is lost.',
    scope: 'network',
    rank: 1,
    isUrgent: true,
    holdsBlocks: true,
    endsBy: 'cause',
    advice:
      'Check the nodes, and add one if they stay down. Invoices can still be created, none expires, and no payment is lost. The alarm clears with the next fresh block.',
  },
  halted: {
    means: 'The chain contradicts an irreversible block of the ledger, so the watcher stopped.',
    impact: 'Nothing is confirmed on this network until you decide. Invoices can still be created.',
    scope: 'network',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice: say`Find out which is right, the ledger or the chain. When it is settled, run "${{ command: 'chain resume' }}".`,
  },
  'unverifiable-block': {
    means: "Quittance can't verify a block, so it holds that block and all later ones.",
    impact: 'Nothing is confirmed on this network until the block is proven or you let it pass.',
    scope: 'network',
    rank: 1,
    isUrgent: true,
    holdsBlocks: true,
    endsBy: 'cause',
    advice: say`Follow the alarm. If one node keeps showing wrong blocks, replace that node. If no node can prove the block and you have compared it with a block explorer, run "${{ command: 'chain pass', input: { block: '…', reason: '…' } }}".`,
  },
  'nodes-disagree': {
    means: 'Operators show different USDT logs for a block.',
    impact: 'That block and all later ones wait until enough operators agree.',
    scope: 'network',
    rank: 1,
    isUrgent: true,
    holdsBlocks: true,
    endsBy: 'cause',
    advice: 'One operator is wrong: add a node of a third one. The alarm clears when enough operators agree.',
  },
  'producers-refused': {
    means: 'Operators disagree about the block producers, or too many changed at once.',
    impact: "Blocks of new producers can't be verified, so confirmations may stop.",
    scope: 'network',
    rank: 1,
    isUrgent: true,
    holdsBlocks: true,
    endsBy: 'cause',
    advice: say`Compare the block producers with a block explorer. If the network really changed so much, run "${{ command: 'chain producers', input: { accept: true } }}".`,
  },
  'not-solid': {
    means: "Blocks that a node calls irreversible aren't irreversible by Quittance's own count.",
    impact: 'Nothing is confirmed on this network.',
    scope: 'network',
    rank: 1,
    isUrgent: true,
    holdsBlocks: true,
    endsBy: 'cause',
    advice:
      'The node follows another chain, or the known block producers are outdated. Compare both with a block explorer.',
  },
  // Alarms about actions of Tether's contract.
  'contract-event': {
    means: "Tether's contract announced a fee or a successor.",
    impact: 'Amounts that arrive may differ, or payments may move to another contract.',
    scope: 'network',
    rank: 1,
    isUrgent: false,
    endsBy: 'operator',
    advice: "Read Tether's announcement.",
  },
  'contract-paused': {
    means: 'Tether paused all USDT transfers.',
    impact: 'Payments fail and cost payers a fee.',
    scope: 'network',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice:
      'Wait for Tether. Payment pages tell payers not to send anything. The alarm clears when Tether resumes transfers.',
  },
  'address-frozen': {
    means: 'Tether froze one of your addresses.',
    impact: "It still receives but can't send. New invoices use other addresses.",
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice: say`Ask Tether why. The address gets no new invoices. When Tether has unfrozen it, use it again with "${{ command: 'address activate' }}".`,
  },
  'funds-destroyed': {
    means: 'Tether destroyed all money on a frozen address.',
    impact: 'The money is gone. The alarm names the address, the amount and the transaction.',
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'operator',
    advice: 'Ask Tether. The ledger records the money as sent to no one, so the books still balance.',
  },
  // Alarms about the records of the chain.
  'unproven-block': {
    means: 'No node showed the exact bytes of a block, so its transfers rest on the word of operators.',
    impact: 'Colluding operators could have invented these transfers.',
    scope: 'network',
    rank: 1,
    isUrgent: false,
    endsBy: 'operator',
    advice:
      'These transfers rest on the word of node operators. Connect a node over gRPC: it shows the bytes that prove a block.',
  },
  'payment-denied': {
    means: "The chain doesn't have the payment of an invoice that is PAID.",
    impact: 'Your shop may have shipped an order without money.',
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'operator',
    advice: 'The invoice stays PAID although the chain denies this payment. Tell your shop.',
  },
  'set-aside': {
    means: "Quittance can't record a payment or expire an order, because a row fails its check.",
    impact: 'That payment or order waits. All other orders continue.',
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice:
      'Repair the row that the alarm names, or restore it from a backup. Quittance records the payment within minutes of the repair.',
  },
  'balance-differs': {
    means: 'The balance of an address on the chain differs from the ledger.',
    impact: 'A transfer is missing in the ledger, or the ledger has one that the chain denies.',
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice:
      'Run the repair that the alarm names. It first shows the differences and changes nothing without your consent. If it finds none, money moved without a log: contact us.',
  },
  // Alarms about the database and its backups.
  'database-restored': {
    means: 'A backup was restored.',
    impact: 'Invoices since that backup are unknown, and new invoices need new addresses.',
    scope: 'network',
    rank: 1,
    isUrgent: false,
    endsBy: 'operator',
    advice: 'Add new addresses. Revoke again the keys that you revoked since the backup.',
  },
  'database-promoted': {
    means: 'The database server was promoted, or recovered to an earlier moment.',
    impact: 'After a failover to an asynchronous standby the newest invoices may be missing.',
    scope: 'network',
    rank: 1,
    isUrgent: false,
    endsBy: 'operator',
    advice:
      'After a failover to a synchronous standby nothing is lost. After any other, follow the alarm. Then close it.',
  },
  'database-full': {
    means: 'PostgreSQL is short of disk, memory or connections.',
    impact: 'New invoices are refused, and payments may not be recorded until there is room.',
    scope: 'network',
    rank: 1,
    isUrgent: false,
    endsBy: 'cause',
    advice:
      'Free disk space on the PostgreSQL server, or raise the limit that the alarm names. The alarm clears within 30 seconds.',
  },
  'backup-failed': {
    means: "A scheduled backup wasn't made, or isn't good.",
    impact: 'A restore would lose everything since the newest good backup.',
    scope: 'installation',
    rank: 1,
    isUrgent: false,
    endsBy: 'cause',
    advice:
      'Follow the alarm. Quittance tries again after ten minutes and keeps the existing backups. The alarm clears with the next good backup.',
  },
  'backup-old': {
    means: 'The newest verified backup is too old, or none exists.',
    impact: 'A restore would lose everything since then.',
    scope: 'installation',
    rank: 1,
    isUrgent: false,
    endsBy: 'cause',
    advice: 'See why in the log, and in the alarm backup-failed. The alarm clears with the next good backup.',
  },
  // Alarms about addresses.
  'address-damaged': {
    means: "The text of an address and its account don't belong together.",
    impact: 'Pages with this address tell payers not to pay, and payments to it wait.',
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice: 'Someone changed the database. Quittance shows the address to no one and sets its payments aside.',
  },
  'address-not-vouched': {
    means: "No signed manifest has an address in use, or the manifest can't be used.",
    impact: 'With QUITTANCE_MANIFEST_MODE=enforce the address is shown nowhere, and its payments wait.',
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice: say`If the address is yours, sign and install a manifest that contains it: "${{ command: 'manifest draft' }}" shows what is missing. If it isn't, someone wrote to the database.`,
  },
  'address-change-pending': {
    means: 'Someone added addresses in the console or with an admin key.',
    impact: 'New invoices use them when another owner confirms, or after 24 hours.',
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice: say`Review the pending addresses, and withdraw any that are not yours: "${{ command: 'address pending' }}".`,
  },
  'address-change-failed': {
    means: "Addresses that waited couldn't be added.",
    impact: "The project doesn't have these addresses.",
    scope: 'project',
    rank: 2,
    isUrgent: false,
    endsBy: 'operator',
    advice: say`No address was added. See why with "${{ command: 'address pending' }}", then add the right ones again.`,
  },
  // Alarms about writes to the database that bypass Quittance.
  'schema-changed': {
    means: 'A table, constraint, index, trigger or function differs from this release.',
    impact: 'A guarantee of the database may be switched off. No process starts over it.',
    scope: 'network',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice:
      'Someone changed the tables, so their guarantees may no longer hold. The alarm clears within a minute of the repair.',
  },
  'row-changed': {
    means: "A row isn't as Quittance sealed it, or has no seal.",
    impact: 'With QUITTANCE_ROW_MACS=require the row is shown and believed nowhere. With warn it is used.',
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'operator',
    advice: "Someone wrote to the database without Quittance. Don't trust this row.",
  },
  'row-unsealed': {
    means: 'Rows of a table have no seal.',
    impact: "They can't be checked for changes.",
    scope: 'installation',
    rank: 1,
    isUrgent: false,
    endsBy: 'operator',
    advice: say`Rows of an older release have no seal. Compare the ledger, then seal them: "${{ command: 'ledger seal' }}". If the rows aren't old, someone inserted them.`,
  },
  'key-unknown': {
    means: "Rows have the seal of a master key that this process doesn't have.",
    impact: "This process can't check these rows.",
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'operator',
    advice:
      'Give every process the same master keys. If all of them have the right keys, someone forged a seal in the database.',
  },
  'rows-missing': {
    means: 'Rows that existed are gone, or the list of rows was cut off.',
    impact: 'Invoices, payments, events or settings may be lost.',
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'operator',
    advice: say`Someone deleted rows without Quittance, or restored an earlier state of the database. Bring the rows back, or accept the loss: "${{ command: 'ledger seal', input: { accept: 'TABLE:ID' } }}".`,
  },
  'audit-broken': {
    means: "The audit log isn't as it was written.",
    impact: 'Someone may have hidden an action.',
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'operator',
    advice: say`Someone changed or truncated the audit log. Find out who, and what it hides: "${{ command: 'audit verify' }}" says where.`,
  },
  'alarms-silenced': {
    means: 'Someone marked alarms as resolved directly in the database.',
    impact: 'Quittance still lists them, because it seals the end of each alarm.',
    scope: 'network',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice:
      'Someone with access to the database hides alarms. The hidden alarms are listed again: handle those first. This alarm clears a day after the last attempt.',
  },
  'watch-stalled': {
    means: 'A check, a loop, a lease or the webhook delivery of a process has stopped working.',
    impact: 'Tampering may go unnoticed, or payments, messages or deliveries wait.',
    scope: 'network',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice:
      'This integrity check has stopped working, so tampering may go unnoticed. The log says why; someone may have written something to the database that makes it fail. The alarm clears after the next successful check.',
  },
  'secret-damaged': {
    means: "The secret of a webhook endpoint, or the receipt key, can't be decrypted.",
    impact: 'Its webhooks wait, or receipts have no signature.',
    scope: 'project',
    rank: 2,
    isUrgent: true,
    endsBy: 'cause',
    advice: say`Find out who wrote to the database. Restore the row or the master key, or create a new secret: "${{ command: 'webhook rotate' }}". Events wait until then.`,
  },
  // Alarms about shops and their receivers.
  'capacity-low': {
    means: 'An amount of a project is nearly used up, or an invoice was refused.',
    impact: 'Orders of that amount will be refused.',
    scope: 'project',
    rank: 2,
    isUrgent: false,
    endsBy: 'cause',
    advice: say`Add addresses: "${{ command: 'address add' }}".`,
  },
  'order-flood': {
    means: 'A project has as many unpaid invoices as its limits allow.',
    impact: 'Further orders are refused with 429 TOO_MANY_UNPAID.',
    scope: 'project',
    rank: 2,
    isUrgent: false,
    endsBy: 'cause',
    advice:
      'Either a sale is under way, or someone makes the shop create orders. The alarm clears when half of both limits is free.',
  },
  'webhook-failing': {
    means: 'Every attempt of 15 minutes to a webhook endpoint failed.',
    impact: "The shop doesn't hear of payments. Its events wait.",
    scope: 'project',
    rank: 2,
    isUrgent: false,
    endsBy: 'cause',
    advice: say`Find out what is wrong with the receiver: "${{ command: 'webhook test' }}", or for an adapter "${{ command: 'deliveries show' }}". The alarm clears when the receiver accepts an event, and for an adapter when the shop accepts every waiting callback.`,
  },
  'webhook-disabled': {
    means: 'A webhook endpoint answered 410, or failed for five days, so it is disabled.',
    impact: 'Nothing is sent to it any more.',
    scope: 'project',
    rank: 2,
    isUrgent: false,
    endsBy: 'cause',
    advice: say`Repair the receiver, then run "${{ command: 'webhook enable' }}", which clears the alarm.`,
  },
  'rate-old': {
    means: "The source of an adapter's rate gives no newer rate.",
    impact: 'Orders of the adapter will be refused when the rate is too old.',
    scope: 'project',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice: say`Repair the source of the rate, or set another source or a fixed rate: "${{ command: 'adapter enable' }}". The alarm clears with a newer rate.`,
  },
  'notify-failing': {
    means: "Messages don't reach a notification channel.",
    impact: 'The people behind this channel hear of no alarm.',
    scope: 'project',
    rank: 2,
    isUrgent: false,
    endsBy: 'cause',
    advice: say`Find out why with "${{ command: 'notify test' }}", or remove the channel with "${{ command: 'notify remove' }}". The alarm clears with the first message that arrives.`,
  },
  // Alarms about processes.
  'network-unwatched': {
    means: 'A network has active addresses, but no watcher.',
    impact: 'No one sees payments on this network until a watcher runs and reads what it missed.',
    scope: 'network',
    rank: 1,
    isUrgent: false,
    endsBy: 'cause',
    advice:
      'Start a watcher of the network. If the network is no longer used, retire the addresses of its projects. The alarm clears when a watcher runs.',
  },
  'clock-wrong': {
    means: 'The clocks of a process, the database and the chain differ by 30 seconds or more.',
    impact: 'More than a minute between process and database stops the creation of invoices.',
    scope: 'network',
    rank: 1,
    isUrgent: false,
    endsBy: 'cause',
    advice:
      'Correct the clocks of the machines, and keep them synchronised with chrony or systemd-timesyncd. The alarm clears within seconds.',
  },
} as const satisfies Record<string, AlarmRow>;

export type AlarmKind = keyof typeof ROWS;

export const ALARMS: Readonly<Record<AlarmKind, AlarmRow>> = ROWS;

export const ALARM_KINDS = Object.keys(ROWS) as readonly AlarmKind[];

/** Returns the row of a kind. The database may contain alarms of a newer release, whose kind this release doesn't know. */
export function alarmRow(kind: string): AlarmRow {
  return Object.hasOwn(ALARMS, kind) ? ALARMS[kind as AlarmKind] : UNKNOWN;
}

/** Returns what to do about an alarm, and where to read more. */
export function adviceOn(kind: string): Text {
  return say`${alarmRow(kind).advice} See docs/reference/alarms.md#${kind}.`;
}

const UNKNOWN: AlarmRow = {
  ...{ scope: 'installation', rank: 1, isUrgent: false, endsBy: 'cause' },
  means: 'A newer release raised it.',
  impact: 'That release knows.',
  advice: 'Upgrade this process.',
};
