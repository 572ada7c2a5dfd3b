import { type Static, Type } from '../../runtime/type.ts';
import { ROLES } from '../actor.ts';
import { nullable, Time } from '../view.ts';

const Texts = nullable(Type.Array(Type.String()));
/** `projects`: those that it may see, `null` for all. */
const ADMIN_KEY = {
  ...{ adminKeyId: Type.String(), name: Type.String(), role: Type.Enum(ROLES), projects: Texts },
  ...{ expiresAt: nullable(Time), allowedIps: Texts },
};

/** A key that was made, with its secret, which is shown this one time. */
export const CreatedAdminKeyView = Type.Object({ ...ADMIN_KEY, adminKey: Type.String() });
export type CreatedAdminKeyView = Static<typeof CreatedAdminKeyView>;

export const AdminKeyView = Type.Object({
  ...{ ...ADMIN_KEY, status: Type.Enum(['active', 'expired', 'revoked']) },
  ...{ createdAt: Time, revokedAt: nullable(Time), lastUsedAt: nullable(Time) },
});
export type AdminKeyView = Static<typeof AdminKeyView>;

export const AdminKeyListView = Type.Object({ data: Type.Array(AdminKeyView) });
export type AdminKeyListView = Static<typeof AdminKeyListView>;

export const RevokedAdminKeyView = Type.Object({ adminKeyId: Type.String(), status: Type.Literal('revoked') });
export type RevokedAdminKeyView = Static<typeof RevokedAdminKeyView>;
