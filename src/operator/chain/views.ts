import { type Static, Type } from '../../runtime/type.ts';
import { nullable, Time } from '../view.ts';

const Text = Type.String();
const Count = Type.Integer();
const Flag = Type.Boolean();
const Halt = Type.Object({ at: Time, reason: Text });
const Block = Type.Object({ number: Count, id: Text, time: Time });

/** A cause that keeps a network behind. `code` is for programs and never changes. */
export const Cause = Type.Object({
  code: Type.Enum([
    ...(['halted', 'no-watcher', 'watcher-silent', 'alarm', 'agreement', 'nodes', 'catching-up'] as const),
    'not-built-upon',
  ]),
  text: Text,
});
export type Cause = Static<typeof Cause>;

/**
 * A node as the watcher sees it. `requestsPerDay`: its limit, `null` without one. It, `failures` and the watcher's `openBlock` are absent in
 * what older releases wrote.
 */
const NodeStatus = Type.Object({
  ...{ url: Text, operator: Text, state: Text, reason: nullable(Text), pausedForMs: Type.Number() },
  ...{ failures: Type.Optional(Count), requests: Count, refusals: Count, requestsToday: Count },
  requestsPerDay: Type.Optional(nullable(Count)),
  answerMs: nullable(Type.Number()),
});

/** `recorded` is irreversible, `examined` the newest block; `watcher` is what the watcher wrote at `updatedAt`. */
export const ChainStatusView = Type.Object({
  network: Text,
  behind: Type.Object({ blocks: nullable(Count), why: Type.Array(Cause) }),
  ...{ recorded: nullable(Block), examined: nullable(Block), halt: nullable(Halt), updatedAt: nullable(Time) },
  watcher: nullable(
    Type.Object({
      ...{ blind: nullable(Text), headNumber: Count, ownSolidNumber: Count, nodeSolidNumber: Count },
      processedNumber: Count,
      catchUp: nullable(
        Type.Object({ blocksPerSecond: nullable(Type.Number()), secondsLeft: nullable(Type.Number()) }),
      ),
      ...{ openBlock: Type.Optional(nullable(Count)), nodes: Type.Array(NodeStatus) },
      requestsPerBlock: nullable(Type.Number()),
    }),
  ),
  alarms: Type.Array(
    Type.Object({ kind: Text, subject: Text, detail: Text, raisedAt: Time, seenAt: Time, seenCount: Count }),
  ),
});
export type ChainStatusView = Static<typeof ChainStatusView>;

/** `resumed`: `false` where it was only asked about. */
export const ResumedView = Type.Object({ network: Text, resumed: Flag, halt: Halt });
export type ResumedView = Static<typeof ResumedView>;

export const AcknowledgedView = Type.Object({ network: Text, kind: Text, subject: nullable(Text), closed: Count });
export type AcknowledgedView = Static<typeof AcknowledgedView>;

const Producers = Type.Array(Type.Object({ address: Text, signer: Text }));

export const ProducersView = Type.Object({
  network: Text,
  data: Type.Array(Type.Object({ adoptedAt: Time, reason: Text, nodes: Type.Array(Text), producers: Producers })),
});
export type ProducersView = Static<typeof ProducersView>;

export const AcceptedProducersView = Type.Object({ network: Text, producers: Count, nodes: Type.Array(Text) });
export type AcceptedProducersView = Static<typeof AcceptedProducersView>;

/** `attestedCount`: blocks that a known producer signed; the others stand only because what is built on them is known. */
const READ = { network: Text, from: Count, to: Count, blockCount: Count, attestedCount: Count };
const Added = Type.Object({ matched: Count, duplicate: Count, unmatched: Count, outgoing: Count });

export const RescannedView = Type.Object({ ...READ, added: Added });
export type RescannedView = Static<typeof RescannedView>;

const DIFFERENCE = {
  ...{ kind: Type.Enum(['missing', 'not-on-chain', 'wrong', 'taken-back']), side: Type.Enum(['in', 'out']) },
  ...{ txId: Text, logIndex: Count, blockNumber: Count, blockId: Text, address: Text, amount: Text },
  onChain: nullable(Type.Object({ blockNumber: Count, blockId: Text, address: Text, amount: Text })),
};
/** A transfer of the ledger, or that it misses; `onChain` is what it is on the chain. */
export const DifferenceView = Type.Object(DIFFERENCE);
export type DifferenceView = Static<typeof DifferenceView>;

/** The same with what the ledger made of it. */
export const PlannedView = Type.Object({
  ...DIFFERENCE,
  transferId: nullable(Text),
  match: nullable(Type.Enum(['matched', 'duplicate', 'unmatched'])),
  invoice: nullable(Type.Object({ invoiceId: Text, externalId: Text, status: Text })),
});
export type PlannedView = Static<typeof PlannedView>;

export const VerifiedRangeView = Type.Object({
  ...READ,
  comparedCount: Count,
  differences: Type.Array(DifferenceView),
});
export type VerifiedRangeView = Static<typeof VerifiedRangeView>;

const PLAN = { ...READ, differences: Type.Array(PlannedView) };
export const RepairView = Type.Union([
  Type.Object({ ...PLAN, isChanged: Type.Literal(false) }),
  Type.Object({
    ...{ ...PLAN, isChanged: Type.Literal(true), reason: Text, by: Text, takenBack: Count, added: Added },
    left: Type.Array(DifferenceView),
  }),
]);
export type RepairView = Static<typeof RepairView>;

const SHOWN_BLOCK = {
  ...{ network: Text, number: Count, blockId: Text, transactionCount: Count, isHeaderProven: Flag },
  shownBy: Type.Array(Type.Object({ node: Text, operator: Text, blockId: Text, problem: nullable(Text) })),
  transfers: Type.Array(
    Type.Object({
      ...{ txId: Text, logIndex: Count, address: Text, amount: Text },
      ...{ invoiceId: nullable(Text), status: nullable(Text) },
    }),
  ),
};
/** `transfers` are those to our addresses. */
export const ShownBlockView = Type.Object(SHOWN_BLOCK);
export type ShownBlockView = Static<typeof ShownBlockView>;
export const PassedBlockView = Type.Object({ ...SHOWN_BLOCK, passedBy: Text, passedAt: Time, reason: Text });
export type PassedBlockView = Static<typeof PassedBlockView>;

export const CheckpointView = Type.Object({ network: Text, number: Count, id: Text, time: Time, producers: Producers });
export type CheckpointView = Static<typeof CheckpointView>;

export const CheckedCheckpointView = Type.Object({
  ...{ network: Text, number: Count, id: Text },
  nodes: Type.Array(Type.Object({ origin: Text, shows: Type.Enum(['same', 'another', 'nothing']) })),
  /** As many operators as must agree show its block, and none shows another. */
  isShown: Flag,
  /** Enough of its producers signed the blocks that begin with its own. */
  isSigned: Flag,
  /** Its producers, with their keys, were in force in this ledger. */
  isRecorded: Flag,
  /** How many of those that are in force in this ledger now it leads to. */
  leadsTo: Count,
  isLeading: Flag,
  isGood: Flag,
});
export type CheckedCheckpointView = Static<typeof CheckedCheckpointView>;

export const ReconciledAddress = Type.Union([
  Type.Object({ address: Text, status: Type.Literal('good'), block: Count, balance: Text, opening: Text }),
  Type.Object({
    ...{ address: Text, status: Type.Literal('differs'), ledger: Text, chain: Text, difference: Text },
    ...{ from: Count, to: Count },
  }),
  Type.Object({ address: Text, status: Type.Literal('too-early'), reason: Text }),
]);
export type ReconciledAddress = Static<typeof ReconciledAddress>;

export const ReconciledView = Type.Object({ network: Text, node: Text, data: Type.Array(ReconciledAddress) });
export type ReconciledView = Static<typeof ReconciledView>;
