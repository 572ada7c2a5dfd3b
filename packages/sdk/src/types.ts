import type { components } from './openapi.ts';

type Schemas = components['schemas'];

export type Invoice = Schemas['Invoice'];
type InvoiceDetails = Schemas['InvoiceDetails'];
export type InvoiceWithPayment = InvoiceDetails & { payment: NonNullable<InvoiceDetails['payment']> };
export type InvoiceWithMetadata = Omit<InvoiceDetails, 'payment'> & {
  metadata: NonNullable<InvoiceDetails['metadata']>;
};
export type WithdrawnInvoice = Schemas['WithdrawnInvoice'];
export type InvoiceStatus = Invoice['status'];

/**
 * The input for an invoice. `amount` is a decimal string such as `"25.00"`. Alternatively, `price` is in a currency for which the operator
 * has set a rate. Asset and network default to USDT on TRON.
 */
export type CreateInvoice = Omit<Schemas['CreateInvoice'], 'amount' | 'price' | 'asset' | 'network'> & {
  asset?: Schemas['CreateInvoice']['asset'] | undefined;
  network?: Schemas['CreateInvoice']['network'] | undefined;
} & (
    | { amount: NonNullable<Schemas['CreateInvoice']['amount']>; price?: undefined }
    | { amount?: undefined; price: NonNullable<Schemas['CreateInvoice']['price']> }
  );

/**
 * A transfer to an address of the project. `reason` is why it probably paid nothing, and `nearestInvoice` is the invoice that it was
 * probably meant for.
 */
export type Transfer = Schemas['Transfer'];

/** A page of the feed, oldest first. `latest` is the project's newest event, whichever page this is. */
export type EventPage = Schemas['EventPage'];

/**
 * An event, whose `type` says what happened. A later release of Quittance may send types that aren't listed here. You receive them as well,
 * so add a `default` branch that does nothing.
 */
export type WebhookEvent = EventPage['data'][number];

/** The codes of rejected requests. docs/reference/api.md explains each of them. */
export type ApiErrorCode = Schemas['Problem']['code'];

export type FieldError = NonNullable<Schemas['Problem']['errors']>[number];
