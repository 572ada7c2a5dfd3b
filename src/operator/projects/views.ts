import { NETWORKS } from '../../domain/network.ts';
import { POLICIES } from '../../domain/policy.ts';
import { type Static, Type } from '../../runtime/type.ts';
import { nullable, Said, Time } from '../view.ts';

/** `maxSurcharge`: USDT as a decimal string. `null`: no limit, or nothing to show. */
export const ProjectView = Type.Object({
  projectId: Type.String(),
  name: Type.String(),
  network: Type.Enum([...NETWORKS]),
  policy: Type.Enum([...POLICIES]),
  maxSurcharge: Type.String(),
  lifetimeMs: Type.Integer(),
  maxUnpaid: nullable(Type.Integer()),
  maxUnpaidPerMinute: nullable(Type.Integer()),
  supportContact: nullable(Type.String()),
  returnUrl: nullable(Type.String()),
  embedOrigins: nullable(Type.String()),
  accent: nullable(Type.String()),
  logoId: nullable(Type.String()),
  createdAt: Time,
  archivedAt: nullable(Time),
});
export type ProjectView = Static<typeof ProjectView>;

/** The addresses that the expected orders use up, if any were told. `warning`: nobody watches its network now. */
export const NewProjectView = Type.Interface([ProjectView], {
  warning: Type.Optional(Said),
  addressNeed: Type.Optional(
    Type.Object({
      ordersPerDay: Type.Integer(),
      prices: Type.Integer(),
      daysOfOne: Type.Number(),
      for90Days: Type.Integer(),
      for365Days: Type.Integer(),
    }),
  ),
});
export type NewProjectView = Static<typeof NewProjectView>;

/** How many addresses are in use, by policy. */
export const ActiveAddresses = Type.Object({
  ...{ tail: Type.Integer(), 'tail-4': Type.Integer(), 'tail-3': Type.Integer() },
  exact: Type.Integer(),
});

/** Of whatever policy. */
export function countActive(active: Static<typeof ActiveAddresses>): number {
  return Object.values(active).reduce((sum, count) => sum + count, 0);
}

export const ListedProjectView = Type.Interface([ProjectView], { activeAddresses: ActiveAddresses });
export type ListedProjectView = Static<typeof ListedProjectView>;

export const ProjectListView = Type.Object({ data: Type.Array(ListedProjectView) });
export type ProjectListView = Static<typeof ProjectListView>;

/** `autoDerived` addresses of at most `autoDeriveLimit` were derived by themselves. */
export const ShownProjectView = Type.Interface([ListedProjectView], {
  retiredAddresses: Type.Integer(),
  autoDerived: Type.Integer(),
  autoDeriveLimit: Type.Integer(),
  activeKeys: Type.Integer(),
  webhookEndpoints: Type.Integer(),
});
export type ShownProjectView = Static<typeof ShownProjectView>;

/** `isChanged`: it was not so before. */
export const ArchivedProjectView = Type.Interface([ProjectView], { isChanged: Type.Boolean() });
export type ArchivedProjectView = Static<typeof ArchivedProjectView>;

const Shown = nullable(Type.Union([Type.String(), Type.Integer()]));

/** `changed`: by the names of the members above. */
export const UpdatedProjectView = Type.Interface([ListedProjectView], {
  changed: Type.Record(Type.String(), Type.Object({ from: Shown, to: Shown })),
});
export type UpdatedProjectView = Static<typeof UpdatedProjectView>;
