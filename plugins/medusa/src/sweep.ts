import type { MedusaContainer } from '@medusajs/framework/types';
import { BigNumber, ContainerRegistrationKeys, Modules } from '@medusajs/framework/utils';
import { processPaymentWorkflow } from '@medusajs/medusa/core-flows';
import { type Quittance, QuittanceError, type WebhookEvent } from '@quittance/sdk';
import { createClient, isAsked, type QuittanceOptions, readExternalId } from './invoice';

/** Of 100 events each; the next sweep goes on where this one ended. */
const MAX_PAGES = 20;
/** What the API says of a single invoice that it doesn't show. Other errors concern the next invoice too. */
const NOT_SHOWN = ['INTEGRITY', 'INVOICE_NOT_FOUND'];
/** What the shop keeps for a person, newest last. */
const MAX_NOTES = 100;

type Data = {
  invoiceId?: string | null;
  externalId?: string;
  nearestInvoice?: { invoiceId: string; externalId: string } | null;
  transferId?: string;
  txId?: string;
  amount?: string;
};

/**
 * Reads the event feed from where the last sweep ended: settles what lost its webhook, and notes for a person, at the order
 * (`metadata.quittance`) or where there is none at the store, what came and settles nothing. For a scheduled job of the shop.
 */
export async function sweep(container: MedusaContainer, options: QuittanceOptions): Promise<void> {
  const client = createClient(options);
  const stores = container.resolve(Modules.STORE);
  const [store] = await stores.listStores();
  if (store === undefined) throw new Error('quittance: the shop has no store');
  let after = store.metadata?.['quittance_last_event'] as string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const { data, hasMore } = await readPage(client, after);
    for (const event of data) {
      await handle(container, client, event).catch(async (error: unknown) => {
        if (error instanceof QuittanceError && !NOT_SHOWN.includes(error.code)) throw error;
        const logger = container.resolve(ContainerRegistrationKeys.LOGGER);
        logger.error(`quittance: ${event.type} ${event.id} was skipped: ${error}`);
        if (!(error instanceof QuittanceError)) await noteSkipped(container, event);
      });
      after = event.id;
    }
    if (after !== undefined) await mergeStore(container, { quittance_last_event: after });
    if (!hasMore) break;
  }
}

/** Handling an event again changes nothing, so an unknown position leads to the first event. */
async function readPage(client: Quittance, after: string | undefined) {
  return client.events.page({ after, limit: 100 }).catch((error: unknown) => {
    const isUnknown = error instanceof QuittanceError && error.errors.some(({ code }) => code === 'UNKNOWN_EVENT');
    if (!isUnknown) throw error;
    // Quittance was restored from an older backup, or the key is now another project's.
    return client.events.page({ limit: 100 });
  });
}

async function handle(container: MedusaContainer, client: Quittance, event: WebhookEvent): Promise<void> {
  const { nearestInvoice, transferId, txId, amount, ...data } = event.data as Data;
  const isUnmatched = event.type === 'transfer.unmatched';
  const invoiceId = isUnmatched ? nearestInvoice?.invoiceId : data.invoiceId;
  if (typeof invoiceId !== 'string') return;
  const invoice = await client.invoices.get(invoiceId, { expand: 'payment' }).catch(async (error: unknown) => {
    const externalId = isUnmatched ? nearestInvoice?.externalId : data.externalId;
    const isDoubtful = error instanceof QuittanceError && error.code === 'INTEGRITY';
    if (isDoubtful) await noteDoubt(container, invoiceId, externalId);
    throw error;
  });
  const asked = readExternalId(invoice.externalId);
  if (asked === null) return;
  const place = await findPlace(container, asked.sessionId);
  const transfer = `${amount} USDT in transaction ${txId}`;
  const paid = invoice.payment.transaction;
  if (event.type === 'transfer.duplicate') {
    await note(
      container,
      place,
      `duplicate ${transferId}`,
      `PAID TWICE: another ${transfer} for ${invoiceId}. Send the money back.`,
    );
  } else if (isUnmatched) {
    const text = `${transfer} arrived, probably for this order (${invoiceId}). It doesn't pay the invoice.`;
    await note(container, place, `unmatched ${transferId}`, text);
  } else if (event.type === 'transfer.refunded') {
    await note(container, place, `refunded ${transferId}`, `Sent back: ${transfer}.`);
  } else if (event.type === 'invoice.pending') {
    await note(
      container,
      place,
      `orphaned ${invoiceId}`,
      'The block with the payment was orphaned, so the invoice waits for payment again.',
    );
  } else if (event.type === 'invoice.paid' && isAsked(invoice, invoice.externalId) && invoice.status === 'PAID') {
    const money = `${paid?.amount} USDT in transaction ${paid?.txId}`;
    if (place.sessionId === null) {
      const text = `PAID AND NOT SETTLED: ${money} for a payment session that no longer exists. Deliver the order, or send the money back.`;
      await note(container, place, `unwanted ${invoiceId}`, text);
      return;
    }
    if (!(await isCurrent(container, place.sessionId, invoiceId))) {
      const text = `PAID AND NOT SETTLED: ${money} for ${invoiceId}, which the payment session replaced because its amount changed. Deliver the order, or send the money back.`;
      await note(container, place, `unwanted ${invoiceId}`, text);
      return;
    }
    await settle(container, client, place, { ...asked, sessionId: place.sessionId, invoiceId });
    const settled = await findPlace(container, asked.sessionId);
    if (settled.orderId === null) {
      const text = `PAID, BUT THERE IS NO ORDER: ${money} for the payment session ${asked.sessionId} (${invoiceId}). Medusa could not complete the cart, for example because an item is sold out; its log shows the reason. Complete the cart, or send the money back.`;
      await note(container, settled, `no order ${invoiceId}`, text);
    } else if (paid?.late === true) {
      await note(container, settled, `late ${invoiceId}`, `Paid late in transaction ${paid.txId}.`);
    }
  }
}

/** Asks a person to look after an invoice that Quittance does not show. */
async function noteDoubt(container: MedusaContainer, invoiceId: string, externalId = ''): Promise<void> {
  const asked = readExternalId(externalId);
  // The project's key also reads invoices that this shop did not create.
  if (asked === null) return;
  const place = await findPlace(container, asked.sessionId);
  const text = `DO NOT DELIVER: Quittance does not show the invoice ${invoiceId}, because its data or its address cannot be trusted. Check the order again after the operator has repaired it.`;
  await note(container, place, `doubt ${invoiceId}`, text);
}

/** These change no order. */
const HARMLESS: readonly string[] = ['invoice.confirming', 'invoice.expired'];

/**
 * Asks a person to look after an event that the shop failed to handle, because it isn't sent again: Medusa acknowledges each webhook before
 * it handles it. If the shop's database doesn't take the note either, the next sweep starts again with this event.
 */
async function noteSkipped(container: MedusaContainer, { id, type, data }: WebhookEvent): Promise<void> {
  if (HARMLESS.includes(type)) return;
  const { invoiceId, nearestInvoice, transferId } = data as Data;
  const about = [invoiceId ?? nearestInvoice?.invoiceId, transferId].filter(Boolean).join(', ');
  const text = `CHECK BY HAND: the shop failed to handle ${type} for ${about}. The log shows the reason at ${id}.`;
  await note(container, { sessionId: null, orderId: null }, `skipped ${id}`, text);
}

/** Whether the session's invoice is this one, and not a later one. */
async function isCurrent(container: MedusaContainer, sessionId: string, invoiceId: string): Promise<boolean> {
  const { data } = await container.resolve(Modules.PAYMENT).retrievePaymentSession(sessionId);
  return data?.['invoiceId'] === invoiceId;
}

/** Does the same as the webhook. Medusa captures the payment first, so it may be captured although its cart was never completed. */
async function settle(
  container: MedusaContainer,
  client: Quittance,
  { orderId }: Place,
  { sessionId, amount, invoiceId }: { sessionId: string; amount: string; invoiceId: string },
) {
  const payments = container.resolve(Modules.PAYMENT);
  const session = await payments.retrievePaymentSession(sessionId, { relations: ['payment'] });
  if (session.payment?.captured_at && orderId !== null) return;
  const input = { action: 'captured' as const, data: { session_id: sessionId, amount: new BigNumber(amount) } };
  await processPaymentWorkflow(container)
    .run({ input })
    .catch(async (error: unknown) => {
      // Medusa doesn't say if Quittance failed. If it still fails, this throws, and the next sweep tries again.
      await client.invoices.get(invoiceId);
      // The payer has paid, so the merchant must learn that there is no order.
      const logger = container.resolve(ContainerRegistrationKeys.LOGGER);
      logger.error(`quittance: the payment session ${sessionId} was not settled: ${error}`);
    });
}

type Place = { sessionId: string | null; orderId: string | null };

async function findPlace(container: MedusaContainer, sessionId: string): Promise<Place> {
  const query = container.resolve(ContainerRegistrationKeys.QUERY);
  const found = await query.graph({
    entity: 'payment_session',
    fields: ['id', 'payment_collection_id'],
    filters: { id: sessionId },
  });
  const [session] = found.data as { id: string; payment_collection_id: string }[];
  if (session === undefined) return { sessionId: null, orderId: null };
  const links = await query.graph({
    entity: 'order_payment_collection',
    fields: ['order_id'],
    filters: { payment_collection_id: session.payment_collection_id },
  });
  const [link] = links.data as { order_id: string }[];
  return { sessionId: session.id, orderId: link?.order_id ?? null };
}

type Note = { key: string; text: string };

/** Once for each key. */
async function note(container: MedusaContainer, { orderId }: Place, key: string, text: string): Promise<void> {
  container.resolve(ContainerRegistrationKeys.LOGGER).warn(`quittance: ${text}`);
  const orders = container.resolve(Modules.ORDER);
  const order = orderId === null ? null : await orders.retrieveOrder(orderId);
  const [store] = await container.resolve(Modules.STORE).listStores();
  const metadata = (order ?? store)?.metadata ?? {};
  const notes = (metadata['quittance'] ?? []) as Note[];
  if (notes.some((each) => each.key === key)) return;
  const quittance = [...notes, { key, text }].slice(-MAX_NOTES);
  if (orderId !== null) await orders.updateOrders(orderId, { metadata: { ...metadata, quittance } });
  else await mergeStore(container, { quittance });
}

async function mergeStore(container: MedusaContainer, added: Record<string, unknown>): Promise<void> {
  const stores = container.resolve(Modules.STORE);
  const [store] = await stores.listStores();
  if (store !== undefined) await stores.updateStores(store.id, { metadata: { ...store.metadata, ...added } });
}
