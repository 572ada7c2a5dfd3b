import type { Receipt } from '../../domain/receipt/receipt.ts';
import { type Static, Type } from '../../runtime/type.ts';
import { nullable, Said, Time } from '../view.ts';

/** A key that was made, with its secret, which is shown this one time. `warning`: no invoice is created with it yet, and why. */
export const CreatedKeyView = Type.Object({
  keyId: Type.String(),
  projectId: Type.String(),
  network: Type.String(),
  name: Type.String(),
  apiKey: Type.String(),
  expiresAt: nullable(Time),
  allowedIps: nullable(Type.Array(Type.String())),
  scopes: Type.Array(Type.String()),
  warning: Type.Optional(Said),
});
export type CreatedKeyView = Static<typeof CreatedKeyView>;

export const KeyView = Type.Object({
  keyId: Type.String(),
  name: Type.String(),
  status: Type.Enum(['active', 'expired', 'revoked']),
  createdAt: Time,
  expiresAt: nullable(Time),
  revokedAt: nullable(Time),
  lastUsedAt: nullable(Time),
  allowedIps: nullable(Type.Array(Type.String())),
  scopes: Type.Array(Type.String()),
});
export type KeyView = Static<typeof KeyView>;

export const KeyListView = Type.Object({ data: Type.Array(KeyView) });
export type KeyListView = Static<typeof KeyListView>;

export const RevokedKeyView = Type.Object({ keyId: Type.String(), status: Type.Literal('revoked') });
export type RevokedKeyView = Static<typeof RevokedKeyView>;

export const RotatedReceiptKeyView = Type.Object({ keyId: Type.String(), formerKeyId: nullable(Type.String()) });
export type RotatedReceiptKeyView = Static<typeof RotatedReceiptKeyView>;

export const VerifiedReceiptView = Type.Union([
  Type.Object({
    valid: Type.Literal(true),
    keyId: Type.String(),
    isIssuerKnown: Type.Boolean(),
    receipt: Type.Unsafe<Receipt>(Type.Object({})),
  }),
  Type.Object({
    valid: Type.Literal(false),
    problem: Type.Enum(['changed', 'unreadable', 'other-key']),
    message: Type.String(),
  }),
]);
export type VerifiedReceiptView = Static<typeof VerifiedReceiptView>;

/**
 * `signing`, `ended`: how many secrets that are in use, or were before, are encrypted with it: those that webhooks are signed with, and those
 * that codes of people are made of. `sealsRows`: whether a row names it, where it is a former key; `null` of others, for most rows name those.
 */
export const MasterKeyView = Type.Object({
  keyId: Type.String(),
  use: Type.Enum(['seals', 'opens', 'missing']),
  signing: Type.Integer(),
  ended: Type.Integer(),
  sealsReceiptKey: Type.Boolean(),
  sealsRows: nullable(Type.Boolean()),
  canBeDropped: Type.Boolean(),
});
export type MasterKeyView = Static<typeof MasterKeyView>;

/** `source`: the variable, the path of the file, or `none`. */
export const MasterKeysView = Type.Object({ source: Type.String(), keys: Type.Array(MasterKeyView) });
export type MasterKeysView = Static<typeof MasterKeysView>;

/**
 * `rows`: how many were sealed anew. Former keys that were `dropped` from the file, are `droppable` from the variable, or are `needed` for rows that
 * they sealed. `lostPeople`: logins of those whose codes come of a secret
 * that no key opens; left out where there are none.
 */
export const RotatedMasterKeyView = Type.Object({
  source: Type.String(),
  keyId: Type.String(),
  isNew: Type.Boolean(),
  resealed: Type.Integer(),
  rows: Type.Integer(),
  dropped: Type.Array(Type.String()),
  droppable: Type.Array(Type.String()),
  needed: Type.Array(Type.Object({ keyId: Type.String(), rows: Type.Integer() })),
  lostEndpoints: Type.Array(Type.String()),
  isReceiptKeyLost: Type.Boolean(),
  lostPeople: Type.Optional(Type.Array(Type.String())),
  lostChannels: Type.Optional(Type.Array(Type.String())),
});
export type RotatedMasterKeyView = Static<typeof RotatedMasterKeyView>;
