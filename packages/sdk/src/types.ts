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
 * What an invoice is asked for: `amount` is a decimal string such as `"25.00"`, or `price` replaces it, in a currency that the operator has set
 * a rate for. Asset and network are USDT on TRON unless given.
 */
export type CreateInvoice = Omit<Schemas['CreateInvoice'], 'amount' | 'price' | 'asset' | 'network'> & {
  asset?: Schemas['CreateInvoice']['asset'] | undefined;
  network?: Schemas['CreateInvoice']['network'] | undefined;
} & (
    | { amount: NonNullable<Schemas['CreateInvoice']['amount']>; price?: undefined }
    | { amount?: undefined; price: NonNullable<Schemas['CreateInvoice']['price']> }
  );

/** What arrived at an address of the project. `reason` and `nearestInvoice`: why it probably paid nothing, and what it was probably meant for. */
export type Transfer = Schemas['Transfer'];

/** A page of the feed, oldest first. `latest` is the project's newest event of all, whatever page this is. */
export type EventPage = Schemas['EventPage'];

/**
 * An event, told apart by `type`. A later release of Quittance may send types that are not listed here, and they are handed on too:
 * leave a `default` branch that does nothing.
 */
export type WebhookEvent = EventPage['data'][number];

/** The codes with which the API refuses a request; docs/reference/api.md says what each means. */
export type ApiErrorCode = Schemas['Problem']['code'];

export type FieldError = NonNullable<Schemas['Problem']['errors']>[number];
