import { say, type Text } from './message.ts';

type AlarmRow = {
  /**
   * `network`: everyone who sees a project of the network sees it. `project`: its subject is a project, or something of one, and there may be many.
   * `installation`: only for those who see all projects.
   */
  scope: 'network' | 'project' | 'installation';
  /** 1: stops or threatens money. 2: waits for a person. */
  rank: 1 | 2;
  /** Whether its message is sent in quiet hours too: each hour may cost money, or someone is at work in the database. */
  isUrgent: boolean;
  /** Whether no block is recorded while it is open. */
  holdsBlocks?: true;
  /** `operator`: reports a single event, so it ends when an operator has read it. */
  endsBy: 'cause' | 'operator';
  /** What to do. docs/chain-truth.md says more of each. */
  advice: Text;
};

/** Everything that an operator must be told of, declared once. A new kind needs a row here, one in docs/chain-truth.md and a rule for Prometheus. */
const ROWS = {
  // What is seen of the chain.
  blind: {
    scope: 'network',
    rank: 1,
    isUrgent: true,
    holdsBlocks: true,
    endsBy: 'cause',
    advice:
      'Look at the nodes, and add one. Invoices are created meanwhile, nothing expires and nothing is lost; it ends with a fresh block.',
  },
  halted: {
    scope: 'network',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice: say`Find out which of the two is right, the ledger or the chain. When it is settled: "${{ command: 'chain resume' }}".`,
  },
  'unverifiable-block': {
    scope: 'network',
    rank: 1,
    isUrgent: true,
    holdsBlocks: true,
    endsBy: 'cause',
    advice: say`Do what the alarm says. If a node showed a wrong block and continues, replace that node. If no node can prove the block, and you compared it with an explorer: "${{ command: 'chain pass', input: { block: '…', reason: '…' } }}".`,
  },
  'nodes-disagree': {
    scope: 'network',
    rank: 1,
    isUrgent: true,
    holdsBlocks: true,
    endsBy: 'cause',
    advice: 'One of the operators is wrong: add a node of a third one. It ends when enough agree.',
  },
  'producers-refused': {
    scope: 'network',
    rank: 1,
    isUrgent: true,
    holdsBlocks: true,
    endsBy: 'cause',
    advice: say`Compare the producers with an explorer. If the network really changed so much: "${{ command: 'chain producers', input: { accept: true } }}".`,
  },
  'not-solid': {
    scope: 'network',
    rank: 1,
    isUrgent: true,
    holdsBlocks: true,
    endsBy: 'cause',
    advice: 'The node shows another chain, or our producers are outdated: compare both with an explorer.',
  },
  // What Tether's contract did.
  'contract-event': {
    scope: 'network',
    rank: 1,
    isUrgent: false,
    endsBy: 'operator',
    advice: 'Read what Tether announced.',
  },
  'contract-paused': {
    scope: 'network',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice:
      'Wait for Tether. Payers are told not to send anything meanwhile; it ends when Tether lets transfers go on.',
  },
  'address-frozen': {
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice: say`Ask Tether why. The address gets no new invoices. When Tether has let it go, take it into use again: "${{ command: 'address activate' }}".`,
  },
  'funds-destroyed': {
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'operator',
    advice: 'Ask Tether. The ledger records the money as sent to nobody, so the books still balance.',
  },
  // What is recorded of the chain.
  'unproven-block': {
    scope: 'network',
    rank: 1,
    isUrgent: false,
    endsBy: 'operator',
    advice: 'Transfers rest on the word of operators. Ask a node by gRPC, which shows the bytes.',
  },
  'payment-denied': {
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'operator',
    advice: 'The invoice stays PAID, and was not paid by this: tell your shop.',
  },
  'set-aside': {
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice:
      'Repair the row that the alarm names, or restore it from a backup: see docs/operations.md. What waits is recorded within minutes.',
  },
  'balance-differs': {
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice:
      'Run the repair that the alarm names: it shows what is different, and changes nothing until you say so. If nothing is, somebody moved money that no log shows: ask us.',
  },
  // The database and its backups.
  'database-restored': {
    scope: 'network',
    rank: 1,
    isUrgent: false,
    endsBy: 'operator',
    advice: 'Add new addresses, and do what else docs/backup.md says.',
  },
  'database-promoted': {
    scope: 'network',
    rank: 1,
    isUrgent: false,
    endsBy: 'operator',
    advice:
      'After a failover to a synchronous standby nothing is lost. Otherwise do what the alarm says, then close it.',
  },
  'database-full': {
    scope: 'network',
    rank: 1,
    isUrgent: false,
    endsBy: 'cause',
    advice: 'Make room on the disk of PostgreSQL, or give it what else the alarm names. It ends within half a minute.',
  },
  'backup-failed': {
    scope: 'installation',
    rank: 1,
    isUrgent: false,
    endsBy: 'cause',
    advice:
      'Do what the alarm says. The next try is ten minutes later, and the backups that are there stay; it ends with a good one.',
  },
  'backup-old': {
    scope: 'installation',
    rank: 1,
    isUrgent: false,
    endsBy: 'cause',
    advice: 'See why in the log, and in the alarm backup-failed. It ends with a good backup.',
  },
  // Addresses.
  'address-damaged': {
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice:
      'Somebody changed the database. The address is shown to nobody, and what concerns it waits: see docs/operations.md.',
  },
  'address-not-vouched': {
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice: say`If it is yours, sign and install a manifest that has it: "${{ command: 'manifest draft' }}" shows what is missing. If not, somebody wrote to the database: see docs/operations.md.`,
  },
  'address-change-pending': {
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice: say`See them, and withdraw what is not yours: "${{ command: 'address pending' }}".`,
  },
  'address-change-failed': {
    scope: 'project',
    rank: 2,
    isUrgent: false,
    endsBy: 'operator',
    advice: say`Nothing was added. See why: "${{ command: 'address pending' }}", and add again what is right.`,
  },
  // Writes to the database past Quittance.
  'schema-changed': {
    scope: 'network',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice:
      'Somebody changed the tables, and what they guarantee may not hold: see docs/operations.md. It ends within a minute after the repair.',
  },
  'row-changed': {
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'operator',
    advice:
      'Somebody wrote to the database past Quittance. What the row says is not to be trusted: see docs/operations.md.',
  },
  'row-unsealed': {
    scope: 'installation',
    rank: 1,
    isUrgent: false,
    endsBy: 'operator',
    advice: say`Rows of an older release have no seal. Compare the ledger, then seal them: "${{ command: 'ledger seal' }}". If they are not old, somebody put them there: see docs/operations.md.`,
  },
  'key-unknown': {
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'operator',
    advice:
      'Give every process the same master keys. If all of them have the right ones, somebody made seals up in the database: see docs/operations.md.',
  },
  'rows-missing': {
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'operator',
    advice: say`Somebody deleted rows past Quittance, or put back an earlier state of the database: see docs/operations.md. Bring them back, or accept that they are gone: "${{ command: 'ledger seal', input: { accept: 'TABLE:ID' } }}".`,
  },
  'audit-broken': {
    scope: 'installation',
    rank: 1,
    isUrgent: true,
    endsBy: 'operator',
    advice: say`Somebody changed the log of what people did, or cut it off: find out who, and what they hide. "${{ command: 'audit verify' }}" says where; see docs/operations.md.`,
  },
  'alarms-silenced': {
    scope: 'network',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice:
      'Somebody with access to the database hides alarms. The alarms that were closed are listed again: handle those first. This alarm ends a day after the last attempt.',
  },
  'watch-stalled': {
    scope: 'network',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice:
      'What this watch would find is not found meanwhile. The log says why it fails; somebody may have written to the database what it fails at. It ends with the first look that is finished.',
  },
  'secret-damaged': {
    scope: 'project',
    rank: 2,
    isUrgent: true,
    endsBy: 'cause',
    advice: say`Find out who wrote to the database, and restore the row or the master key, or make a new secret: "${{ command: 'webhook rotate' }}". Events wait meanwhile.`,
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
    advice: 'A sale, or somebody makes the shop create orders. It ends by itself when half of both limits is free.',
  },
  'webhook-failing': {
    scope: 'project',
    rank: 2,
    isUrgent: false,
    endsBy: 'cause',
    advice: say`Find out what is wrong with the receiver: "${{ command: 'webhook test' }}", or for an adapter "${{ command: 'deliveries show' }}". It ends when the receiver accepts an event, and for an adapter when the shop accepts every callback that waits.`,
  },
  'webhook-disabled': {
    scope: 'project',
    rank: 2,
    isUrgent: false,
    endsBy: 'cause',
    advice: say`Repair the receiver, then "${{ command: 'webhook enable' }}", which ends it.`,
  },
  'rate-old': {
    scope: 'project',
    rank: 1,
    isUrgent: true,
    endsBy: 'cause',
    advice: say`Repair the source of the rate, or set another one or a fixed rate: "${{ command: 'adapter enable' }}". It ends with a newer rate.`,
  },
  'notify-failing': {
    scope: 'project',
    rank: 2,
    isUrgent: false,
    endsBy: 'cause',
    advice: say`Find out why: "${{ command: 'notify test' }}", or take the channel away: "${{ command: 'notify remove' }}". It ends with the first message that arrives.`,
  },
  // Processes.
  'network-unwatched': {
    scope: 'network',
    rank: 1,
    isUrgent: false,
    endsBy: 'cause',
    advice:
      'Start a watcher of the network, or retire the addresses of its projects if it is not used any more. It ends when a watcher runs.',
  },
  'clock-wrong': {
    scope: 'network',
    rank: 1,
    isUrgent: false,
    endsBy: 'cause',
    advice:
      'Set the clocks of the machines right, and keep them so: chrony, or systemd-timesyncd. It ends within seconds.',
  },
} as const satisfies Record<string, AlarmRow>;

export type AlarmKind = keyof typeof ROWS;

export const ALARMS: Readonly<Record<AlarmKind, AlarmRow>> = ROWS;

export const ALARM_KINDS = Object.keys(ROWS) as readonly AlarmKind[];

/** A kind of a newer release is not known: the database may hold its alarms. */
export function alarmRow(kind: string): AlarmRow {
  return Object.hasOwn(ALARMS, kind) ? ALARMS[kind as AlarmKind] : UNKNOWN;
}

const UNKNOWN: AlarmRow = {
  ...{ scope: 'installation', rank: 1, isUrgent: false, endsBy: 'cause' },
  advice: 'See docs/chain-truth.md.',
};
