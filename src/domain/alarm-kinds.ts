import { say, type Text } from './message.ts';

type AlarmRow = {
  /**
   * `network`: visible to everyone who sees a project of the network. `project`: its subject is a project or a part of one, and there may
   * be many. `installation`: only for people who see all projects.
   */
  scope: 'network' | 'project' | 'installation';
  /** 1: stops or threatens money. 2: waits for a person. */
  rank: 1 | 2;
  /** Whether its message is also sent in quiet hours, because each hour may cost money, or someone is tampering with the database. */
  isUrgent: boolean;
  /** Whether no block is recorded while it is open. */
  holdsBlocks?: true;
  /** `operator`: it reports a single event, so it ends when an operator has read it. */
  endsBy: 'cause' | 'operator';
  /** The next steps. docs/explained/chain-truth.md has more about each. */
  advice: Text;
};

/**
 * Every alarm for operators, declared once. A new kind needs a row here, one in docs/explained/chain-truth.md and a rule for Prometheus.
 */
const ROWS = {
  // Visibility of the chain.
  blind: {
    scope: 'network',
    rank: 1,
    isUrgent: true,
    holdsBlocks: true,
    endsBy: 'cause',
    advice:
      'Check the nodes, and add one if they stay down. Invoices can still be created, none expires, and no payment is lost. The alarm clears with the next fresh block.',
  },
  halted: {
    scope: 'network',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice: say`Find out which is right, the ledger or the chain. When it is settled, run "${{ command: 'chain resume' }}".`,
  },
  'unverifiable-block': {
    scope: 'network',
    rank: 1,
    isUrgent: true,
    holdsBlocks: true,
    endsBy: 'cause',
    advice: say`Follow the alarm. If one node keeps showing wrong blocks, replace that node. If no node can prove the block and you have compared it with a block explorer, run "${{ command: 'chain pass', input: { block: '…', reason: '…' } }}".`,
  },
  'nodes-disagree': {
    scope: 'network',
    rank: 1,
    isUrgent: true,
    holdsBlocks: true,
    endsBy: 'cause',
    advice: 'One operator is wrong: add a node of a third one. The alarm clears when enough operators agree.',
  },
  'producers-refused': {
    scope: 'network',
    rank: 1,
    isUrgent: true,
    holdsBlocks: true,
    endsBy: 'cause',
    advice: say`Compare the block producers with a block explorer. If the network really changed so much, run "${{ command: 'chain producers', input: { accept: true } }}".`,
  },
  'not-solid': {
    scope: 'network',
    rank: 1,
    isUrgent: true,
    holdsBlocks: true,
    endsBy: 'cause',
    advice:
      'The node follows another chain, or the known block producers are outdated. Compare both with a block explorer.',
  },
  // Actions of Tether's contract.
  'contract-event': {
    scope: 'network',
    rank: 1,
    isUrgent: false,
    endsBy: 'operator',
    advice: "Read Tether's announcement.",
  },
  'contract-paused': {
    scope: 'network',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice:
      'Wait for Tether. Payment pages tell payers not to send anything. The alarm clears when Tether resumes transfers.',
  },
  'address-frozen': {
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice: say`Ask Tether why. The address gets no new invoices. When Tether has unfrozen it, use it again with "${{ command: 'address activate' }}".`,
  },
  'funds-destroyed': {
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'operator',
    advice: 'Ask Tether. The ledger records the money as sent to no one, so the books still balance.',
  },
  // Records of the chain.
  'unproven-block': {
    scope: 'network',
    rank: 1,
    isUrgent: false,
    endsBy: 'operator',
    advice:
      'These transfers rest on the word of node operators. Connect a node over gRPC: it shows the bytes that prove a block.',
  },
  'payment-denied': {
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'operator',
    advice: 'The invoice stays PAID although the chain denies this payment. Tell your shop.',
  },
  'set-aside': {
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice:
      'Repair the row that the alarm names, or restore it from a backup: see docs/guides/operations.md. Quittance records the payment within minutes of the repair.',
  },
  'balance-differs': {
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice:
      'Run the repair that the alarm names. It first shows the differences and changes nothing without your consent. If it finds none, money moved without a log: contact us.',
  },
  // The database and its backups.
  'database-restored': {
    scope: 'network',
    rank: 1,
    isUrgent: false,
    endsBy: 'operator',
    advice: 'Add new addresses, and follow docs/guides/backup.md.',
  },
  'database-promoted': {
    scope: 'network',
    rank: 1,
    isUrgent: false,
    endsBy: 'operator',
    advice:
      'After a failover to a synchronous standby nothing is lost. After any other, follow the alarm. Then close it.',
  },
  'database-full': {
    scope: 'network',
    rank: 1,
    isUrgent: false,
    endsBy: 'cause',
    advice:
      'Free disk space on the PostgreSQL server, or raise the limit that the alarm names. The alarm clears within 30 seconds.',
  },
  'backup-failed': {
    scope: 'installation',
    rank: 1,
    isUrgent: false,
    endsBy: 'cause',
    advice:
      'Follow the alarm. Quittance tries again after ten minutes and keeps the existing backups. The alarm clears with the next good backup.',
  },
  'backup-old': {
    scope: 'installation',
    rank: 1,
    isUrgent: false,
    endsBy: 'cause',
    advice: 'See why in the log, and in the alarm backup-failed. The alarm clears with the next good backup.',
  },
  // Addresses.
  'address-damaged': {
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice:
      'Someone changed the database. Quittance shows the address to no one and sets its payments aside: see docs/guides/operations.md.',
  },
  'address-not-vouched': {
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice: say`If the address is yours, sign and install a manifest that contains it: "${{ command: 'manifest draft' }}" shows what is missing. If it isn't, someone wrote to the database: see docs/guides/operations.md.`,
  },
  'address-change-pending': {
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice: say`Review the pending addresses, and withdraw any that are not yours: "${{ command: 'address pending' }}".`,
  },
  'address-change-failed': {
    scope: 'project',
    rank: 2,
    isUrgent: false,
    endsBy: 'operator',
    advice: say`No address was added. See why with "${{ command: 'address pending' }}", then add the right ones again.`,
  },
  // Writes to the database outside Quittance.
  'schema-changed': {
    scope: 'network',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice:
      'Someone changed the tables, so their guarantees may no longer hold: see docs/guides/operations.md. The alarm clears within a minute of the repair.',
  },
  'row-changed': {
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'operator',
    advice: "Someone wrote to the database without Quittance. Don't trust this row: see docs/guides/operations.md.",
  },
  'row-unsealed': {
    scope: 'installation',
    rank: 1,
    isUrgent: false,
    endsBy: 'operator',
    advice: say`Rows of an older release have no seal. Compare the ledger, then seal them: "${{ command: 'ledger seal' }}". If the rows aren't old, someone inserted them: see docs/guides/operations.md.`,
  },
  'key-unknown': {
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'operator',
    advice:
      'Give every process the same master keys. If all of them have the right keys, someone forged a seal in the database: see docs/guides/operations.md.',
  },
  'rows-missing': {
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'operator',
    advice: say`Someone deleted rows without Quittance, or restored an earlier state of the database: see docs/guides/operations.md. Bring the rows back, or accept the loss: "${{ command: 'ledger seal', input: { accept: 'TABLE:ID' } }}".`,
  },
  'audit-broken': {
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'operator',
    advice: say`Someone changed or truncated the audit log. Find out who, and what it hides: "${{ command: 'audit verify' }}" says where. See docs/guides/operations.md.`,
  },
  'alarms-silenced': {
    scope: 'network',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice:
      'Someone with access to the database hides alarms. The hidden alarms are listed again: handle those first. This alarm clears a day after the last attempt.',
  },
  'watch-stalled': {
    scope: 'network',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice:
      'This integrity check has stopped working, so tampering may go unnoticed. The log says why; someone may have written something to the database that makes it fail. The alarm clears after the next successful check.',
  },
  'secret-damaged': {
    scope: 'project',
    rank: 2,
    isUrgent: true,
    endsBy: 'cause',
    advice: say`Find out who wrote to the database. Restore the row or the master key, or create a new secret: "${{ command: 'webhook rotate' }}". Events wait until then.`,
  },
  // Shops and their receivers.
  'capacity-low': {
    scope: 'project',
    rank: 2,
    isUrgent: false,
    endsBy: 'cause',
    advice: say`Add addresses: "${{ command: 'address add' }}".`,
  },
  'order-flood': {
    scope: 'project',
    rank: 2,
    isUrgent: false,
    endsBy: 'cause',
    advice:
      'Either a sale is under way, or someone makes the shop create orders. The alarm clears when half of both limits is free.',
  },
  'webhook-failing': {
    scope: 'project',
    rank: 2,
    isUrgent: false,
    endsBy: 'cause',
    advice: say`Find out what is wrong with the receiver: "${{ command: 'webhook test' }}", or for an adapter "${{ command: 'deliveries show' }}". The alarm clears when the receiver accepts an event, and for an adapter when the shop accepts every waiting callback.`,
  },
  'webhook-disabled': {
    scope: 'project',
    rank: 2,
    isUrgent: false,
    endsBy: 'cause',
    advice: say`Repair the receiver, then run "${{ command: 'webhook enable' }}", which clears the alarm.`,
  },
  'rate-old': {
    scope: 'project',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice: say`Repair the source of the rate, or set another source or a fixed rate: "${{ command: 'adapter enable' }}". The alarm clears with a newer rate.`,
  },
  'notify-failing': {
    scope: 'project',
    rank: 2,
    isUrgent: false,
    endsBy: 'cause',
    advice: say`Find out why with "${{ command: 'notify test' }}", or remove the channel with "${{ command: 'notify remove' }}". The alarm clears with the first message that arrives.`,
  },
  // Processes.
  'network-unwatched': {
    scope: 'network',
    rank: 1,
    isUrgent: false,
    endsBy: 'cause',
    advice:
      'Start a watcher of the network. If the network is no longer used, retire the addresses of its projects. The alarm clears when a watcher runs.',
  },
  'clock-wrong': {
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

/** The database may hold alarms of a newer release, whose kind is unknown here. */
export function alarmRow(kind: string): AlarmRow {
  return Object.hasOwn(ALARMS, kind) ? ALARMS[kind as AlarmKind] : UNKNOWN;
}

const UNKNOWN: AlarmRow = {
  ...{ scope: 'installation', rank: 1, isUrgent: false, endsBy: 'cause' },
  advice: 'See docs/explained/chain-truth.md.',
};
