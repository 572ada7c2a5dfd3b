import { type Static, Type } from '../../../core/runtime/type.ts';
import { nullable, Time } from '../fields.ts';

const Text = Type.String();

/** An environment variable. `value` is the effective value. It's `null` for a secret, which is never shown, and if there is no value. */
export const SettingView = Type.Object({
  ...{ name: Text, value: nullable(Text), isSet: Type.Boolean(), isSecret: Type.Boolean() },
});
export type SettingView = Static<typeof SettingView>;

export const SettingListView = Type.Object({ data: Type.Array(SettingView) });
export type SettingListView = Static<typeof SettingListView>;

/**
 * The answering process and its database. `migrations` is the number of migrations applied to the schema, and `schema` is the newest of
 * them. `backup` is the last backup that this program made, with the time when a backup was last verified completely. Both are from the
 * newest 10,000 actions.
 */
export const SystemView = Type.Object({
  ...{ release: Text, node: Text, postgres: Text, schema: Text, migrations: Type.Integer() },
  ...{ roles: Type.Array(Text), startedAt: Time, asOf: Time },
  backupRequestedAt: nullable(Time),
  backup: nullable(Type.Object({ madeAt: Time, file: Text, isFinal: Type.Boolean(), verifiedAt: nullable(Time) })),
});
export type SystemView = Static<typeof SystemView>;
