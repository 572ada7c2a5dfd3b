import { say, type Text } from '../../domain/message.ts';
import type { AlarmKind } from '../../store/chain/alarms.ts';

/** What somebody does about an alarm of each kind, and how those end that nobody closes. docs/chain-truth.md says more. */
const ADVICE: Record<AlarmKind, Text> = {
  blind:
    'Look at the nodes, and add one. Invoices are created meanwhile, nothing expires and nothing is lost; it ends with a fresh block.',
  halted: say`Find out which of the two is right, the ledger or the chain. When it is settled: "${{ command: 'chain resume' }}".`,
  'unverifiable-block': say`Do what the alarm says. If a node showed a wrong block and continues, replace that node. If no node can prove the block, and you compared it with an explorer: "${{ command: 'chain pass', input: { block: '…', reason: '…' } }}".`,
  'unproven-block': 'Transfers rest on the word of operators. Ask a node by gRPC, which shows the bytes.',
  'nodes-disagree': 'One of the operators is wrong: add a node of a third one. It ends when enough agree.',
  'producers-refused': say`Compare the producers with an explorer. If the network really changed so much: "${{ command: 'chain producers', input: { accept: true } }}".`,
  'not-solid': 'The node shows another chain, or our producers are outdated: compare both with an explorer.',
  'contract-event': 'Read what Tether announced.',
  'payment-denied': 'The invoice stays PAID, and was not paid by this: tell your shop.',
  'set-aside':
    'Repair the row that the alarm names, or restore it from a backup: see docs/operations.md. What waits is recorded within minutes.',
  'balance-differs':
    'Run the repair that the alarm names: it shows what is different, and changes nothing until you say so. If nothing is, somebody moved money that no log shows: ask us.',
  'contract-paused':
    'Wait for Tether. Payers are told not to send anything meanwhile; it ends when Tether lets transfers go on.',
  'address-frozen': say`Ask Tether why. The address gets no new invoices. When Tether has let it go, take it into use again: "${{ command: 'address activate' }}".`,
  'funds-destroyed': 'Ask Tether. The ledger records the money as sent to nobody, so the books still balance.',
  'address-damaged':
    'Somebody changed the database. The address is shown to nobody, and what concerns it waits: see docs/operations.md.',
  'address-not-vouched': say`If it is yours, sign and install a manifest that has it: "${{ command: 'manifest draft' }}" shows what is missing. If not, somebody wrote to the database: see docs/operations.md.`,
  'schema-changed':
    'Somebody changed the tables, and what they guarantee may not hold: see docs/operations.md. It ends within a minute after the repair.',
  'row-changed':
    'Somebody wrote to the database past Quittance. What the row says is not to be trusted: see docs/operations.md.',
  'row-unsealed': say`Rows of an older release have no seal. Compare the ledger, then seal them: "${{ command: 'ledger seal' }}". If they are not old, somebody put them there: see docs/operations.md.`,
  'key-unknown':
    'Give every process the same master keys. If all of them have the right ones, somebody made seals up in the database: see docs/operations.md.',
  'rows-missing': say`Somebody deleted rows past Quittance, or put back an earlier state of the database: see docs/operations.md. Bring them back, or accept that they are gone: "${{ command: 'ledger seal', input: { accept: 'TABLE:ID' } }}".`,
  'audit-broken': say`Somebody changed the log of what people did, or cut it off: find out who, and what they hide. "${{ command: 'audit verify' }}" says where; see docs/operations.md.`,
  'alarms-silenced':
    'Somebody with access to the database hides alarms. The alarms that were closed are listed again: handle those first. This alarm ends a day after the last attempt.',
  'watch-stalled':
    'What this watch would find is not found meanwhile. The log says why it fails; somebody may have written to the database what it fails at. It ends with the first look that is finished.',
  'capacity-low': say`Add addresses: "${{ command: 'address add' }}".`,
  'address-change-pending': say`See them, and withdraw what is not yours: "${{ command: 'address pending' }}".`,
  'address-change-failed': say`Nothing was added. See why: "${{ command: 'address pending' }}", and add again what is right.`,
  'order-flood':
    'A sale, or somebody makes the shop create orders. It ends by itself when half of both limits is free.',
  'webhook-disabled': say`Repair the receiver, then "${{ command: 'webhook enable' }}", which ends it.`,
  'webhook-failing': say`Find out what is wrong with the receiver: "${{ command: 'webhook test' }}", or for an adapter "${{ command: 'deliveries show' }}". It ends when the receiver accepts an event, and for an adapter when the shop accepts every callback that waits.`,
  'rate-old': say`Repair the source of the rate, or set another one or a fixed rate: "${{ command: 'adapter enable' }}". It ends with a newer rate.`,
  'notify-failing': say`Find out why: "${{ command: 'notify test' }}", or take the channel away: "${{ command: 'notify remove' }}". It ends with the first message that arrives.`,
  'secret-damaged': say`Find out who wrote to the database, and restore the row or the master key, or make a new secret: "${{ command: 'webhook rotate' }}". Events wait meanwhile.`,
  'backup-failed':
    'Do what the alarm says. The next try is ten minutes later, and the backups that are there stay; it ends with a good one.',
  'backup-old': 'See why in the log, and in the alarm backup-failed. It ends with a good backup.',
  'network-unwatched':
    'Start a watcher of the network, or retire the addresses of its projects if it is not used any more. It ends when a watcher runs.',
  'clock-wrong':
    'Set the clocks of the machines right, and keep them so: chrony, or systemd-timesyncd. It ends within seconds.',
  'database-full':
    'Make room on the disk of PostgreSQL, or give it what else the alarm names. It ends within half a minute.',
  'database-promoted':
    'After a failover to a synchronous standby nothing is lost. Otherwise do what the alarm says, then close it.',
  'database-restored': 'Add new addresses, and do what else docs/backup.md says.',
};

/** A kind of a newer release has words that this one does not know. */
export function adviseOnAlarm(kind: string): Text {
  return Object.hasOwn(ADVICE, kind) ? ADVICE[kind as AlarmKind] : 'See docs/chain-truth.md.';
}
