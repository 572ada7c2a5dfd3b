// biome-ignore-all lint/performance/noBarrelFile: the one entry of the package; everything in it fits in 6 KB.
export { type ErrorCode, QuittanceError } from './error.ts';
export { isFulfillable } from './is-fulfillable.ts';
export {
  type CreateOptions,
  type EventQuery,
  type GetOptions,
  Quittance,
  type RequestOptions,
} from './quittance.ts';
export type { QuittanceOptions } from './settings.ts';
export type {
  ApiErrorCode,
  CreateInvoice,
  EventPage,
  FieldError,
  Invoice,
  InvoiceStatus,
  InvoiceWithMetadata,
  InvoiceWithPayment,
  WebhookEvent,
  WithdrawnInvoice,
} from './types.ts';
export {
  type Diagnosis,
  type VerificationCode,
  WebhookVerificationError,
} from './webhooks/verification-error.ts';
export * as webhooks from './webhooks/webhooks.ts';
