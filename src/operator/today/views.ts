import { type Static, Type } from '../../runtime/type.ts';
import { nullable, Said, Time } from '../view.ts';

const sum = Type.Object({ count: Type.Integer(), amount: Type.String() });

/** What needs somebody. `rank`: 1 stops or threatens money, 2 waits for a person, 3 soon. `next`: the step to take. */
export const ConcernView = Type.Object({
  rank: Type.Integer(),
  about: Type.Enum(['alarm', 'receiver', 'money', 'backup', 'project', 'addresses']),
  ...{ code: Type.String(), subject: Type.String(), text: Type.String(), since: nullable(Time), next: Said },
});
export type ConcernView = Static<typeof ConcernView>;

const SETUP_STEPS = ['address', 'key', 'webhook', 'payment', 'notifications', 'backup', 'attestation'] as const;

/** `setUp`: without `attestation` where addresses need not be signed. `figures` `null`: they took too long. `share`: of invoices that were paid or ran out, of 30 days; `timed`: how many payments the median is of. `isSample`: of the newest 5,000 invoices, or 500 payments, because there were more. Days are those of UTC. */
export const TodayView = Type.Object({
  ...{ projectId: Type.String(), asOf: Time },
  concerns: Type.Array(ConcernView),
  setUp: Type.Array(Type.Object({ step: Type.Enum(SETUP_STEPS), isDone: Type.Boolean() })),
  figures: nullable(
    Type.Object({
      ...{ today: sum, days7: sum, days30: sum },
      share: Type.Object({ paid: Type.Integer(), decided: Type.Integer(), isSample: Type.Boolean() }),
      timed: Type.Object({ count: Type.Integer(), isSample: Type.Boolean() }),
      medianMs: nullable(Type.Integer()),
      days: Type.Array(Type.Object({ day: Type.String(), count: Type.Integer(), amount: Type.String() })),
    }),
  ),
  chain: Type.Object({
    ...{ network: Type.String(), head: nullable(Type.Integer()), recorded: nullable(Type.Integer()) },
    ...{ headAt: nullable(Time), nodes: Type.Integer(), goodNodes: Type.Integer(), why: nullable(Type.String()) },
  }),
});
export type TodayView = Static<typeof TodayView>;
