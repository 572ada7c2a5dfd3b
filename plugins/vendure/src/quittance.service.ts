import { Inject, Injectable } from '@nestjs/common';
import {
  type InvoiceWithPayment,
  isFulfillable,
  type Quittance,
  QuittanceError,
  type WebhookEvent,
} from '@quittance/sdk';
import { HistoryEntryType } from '@vendure/common/lib/generated-types';
import {
  ConfigService,
  HistoryService,
  type ID,
  isGraphQlErrorResult,
  Logger,
  Order,
  OrderService,
  Payment,
  type RequestContext,
  RequestContextService,
  SettingsStoreService,
  TransactionalConnection,
  totalCoveredByPayments,
} from '@vendure/core';
import { formatMinor, isAsked, toPriceCurrency } from './amount';
import { createClient, loggerCtx, QUITTANCE_OPTIONS, type QuittanceOptions } from './options';
import { readStored, type Stored, toMetadata } from './stored';

export const CURSOR = { namespace: 'quittance', name: 'lastEvent' };
const CURSOR_KEY = `${CURSOR.namespace}.${CURSOR.name}`;
/** Of 100 events each: a sweep ends within minutes, and the next one goes on where it ended. */
const MAX_PAGES = 20;
/** What the API says of a single invoice that it doesn't show. Other errors concern the next invoice too. */
export const NOT_SHOWN = ['INTEGRITY', 'INVOICE_NOT_FOUND'];
/** States of an order in which a payment may settle it. */
const PAYABLE = ['ArrangingPayment', 'ArrangingAdditionalPayment', 'PaymentAuthorized'];

type Data = {
  invoiceId?: string | null;
  nearestInvoice?: { invoiceId: string } | null;
  txId?: string;
  amount?: string;
  transferId?: string;
};
type Found = { payment: Payment; stored: Stored };

@Injectable()
export class QuittanceService {
  @Inject(QUITTANCE_OPTIONS) private readonly options!: QuittanceOptions;
  @Inject(TransactionalConnection) private readonly connection!: TransactionalConnection;
  @Inject(RequestContextService) private readonly contexts!: RequestContextService;
  @Inject(OrderService) private readonly orders!: OrderService;
  @Inject(HistoryService) private readonly history!: HistoryService;
  @Inject(SettingsStoreService) private readonly settings!: SettingsStoreService;
  @Inject(ConfigService) private readonly config!: ConfigService;
  private made: Quittance | undefined;

  get client(): Quittance {
    this.made ??= createClient(this.options);
    return this.made;
  }

  /** The decimals of the shop's amounts. */
  get precision(): number {
    return this.config.entityOptions.moneyStrategy.precision ?? 2;
  }

  /** Lets requests for one order wait for each other. SQLite has no such lock, and lets all writers wait. */
  async lockOrder(ctx: RequestContext, orderId: ID): Promise<void> {
    const { type } = this.connection.rawConnection.options;
    if (['sqljs', 'better-sqlite3', 'sqlite'].includes(type)) return;
    const query = this.connection.getRepository(ctx, Order).createQueryBuilder('o').select('o.id');
    await query.setLock('pessimistic_write').where('o.id = :id', { id: orderId }).getOne();
  }

  /** Those of Quittance that have an invoice, oldest first. */
  async paymentsOf(ctx: RequestContext, orderId: ID): Promise<Payment[]> {
    const all = await this.orders.getOrderPayments(ctx, orderId);
    return all.filter((payment) => readStored(payment) !== null);
  }

  /** The part of an order's total that no payment covers, in minor units; negative if they cover more. */
  async amountLeft(ctx: RequestContext, orderId: ID, except?: Payment): Promise<number> {
    const order = await this.connection.getRepository(ctx, Order).findOneByOrFail({ id: orderId });
    const all = await this.orders.getOrderPayments(ctx, orderId);
    order.payments = all.filter(({ id }) => id !== except?.id);
    return order.totalWithTax - totalCoveredByPayments(order);
  }

  /** What the payment's page shows; `paid` also while the payment can still be orphaned. Counts as open while Quittance does not answer. */
  async readPageState(payment: Payment): Promise<'open' | 'paid' | 'withdrawn'> {
    try {
      const { status, withdrawnAt } = await this.client.invoices.get(payment.transactionId, { expand: 'payment' });
      if (status === 'CONFIRMING' || status === 'PAID') return 'paid';
      return withdrawnAt === undefined ? 'open' : 'withdrawn';
    } catch (error) {
      if (!(error instanceof QuittanceError)) throw error;
      return error.code === 'INVOICE_NOT_FOUND' ? 'withdrawn' : 'open';
    }
  }

  /** The payment's invoice as the API has it now; null if it is not the one that was asked for. */
  async readInvoice(payment: Payment): Promise<InvoiceWithPayment | null> {
    const stored = readStored(payment);
    if (stored === null) return null;
    const invoice = await this.client.invoices.get(payment.transactionId, { expand: 'payment' });
    const isOurs = invoice.externalId === stored.externalId;
    return isOurs && isAsked(invoice.payment, stored) ? invoice : null;
  }

  /** Takes an event as the occasion to read the invoice. May be called any number of times, also at once. */
  async handle(event: WebhookEvent): Promise<void> {
    const data = event.data as Data;
    const isUnmatched = event.type === 'transfer.unmatched';
    const invoiceId = isUnmatched ? data.nearestInvoice?.invoiceId : data.invoiceId;
    if (typeof invoiceId !== 'string') {
      if (event.type.startsWith('transfer.')) {
        Logger.warn(`${event.type} of ${data.amount} USDT matches no invoice: transaction ${data.txId}`, loggerCtx);
      }
      return;
    }
    const ctx = await this.contexts.create({ apiType: 'admin' });
    const repository = this.connection.getRepository(ctx, Payment);
    const found = await repository.findOne({ where: { transactionId: invoiceId }, relations: ['order'] });
    if (found === null || readStored(found) === null) {
      Logger.warn(`${event.type} of ${invoiceId}, which belongs to no payment of this shop`, loggerCtx);
      return;
    }
    const invoice = await this.readInvoice(found).catch(async (error: unknown) => {
      if (error instanceof QuittanceError && error.code === 'INTEGRITY') await this.noteDoubt(ctx, found);
      throw error;
    });
    await this.connection.withTransaction(ctx, async (tx) => {
      await this.lockOrder(tx, found.order.id);
      const where = { where: { id: found.id }, relations: ['order'] };
      const payment = await this.connection.getRepository(tx, Payment).findOneOrFail(where);
      const stored = readStored(payment);
      if (stored === null) return;
      if (invoice === null) {
        await this.note(
          tx,
          { payment, stored },
          'mismatch',
          'DO NOT DELIVER: the invoice does not belong to this payment.',
        );
        return;
      }
      await this.noteEvent(tx, { payment, stored }, event.type, data);
      stored.public.status = invoice.status;
      await this.save(tx, { payment, stored });
      await this.settle(tx, { payment, stored }, invoice);
    });
  }

  /** Asks the merchant to look after an invoice that Quittance does not show. */
  private async noteDoubt(ctx: RequestContext, { id, order }: Payment): Promise<void> {
    await this.connection.withTransaction(ctx, async (tx) => {
      await this.lockOrder(tx, order.id);
      const where = { where: { id }, relations: ['order'] };
      const payment = await this.connection.getRepository(tx, Payment).findOneOrFail(where);
      const stored = readStored(payment);
      const text =
        'DO NOT DELIVER: Quittance does not show the invoice, because its data or its address cannot be trusted. Check the order again after the operator has repaired it.';
      if (stored !== null) await this.note(tx, { payment, stored }, 'doubt', text);
    });
  }

  /** Reads the feed from where the last sweep ended, for webhooks that were lost. */
  async sweep(): Promise<{ events: number }> {
    const ctx = await this.contexts.create({ apiType: 'admin' });
    let after = await this.settings.get<string>(ctx, CURSOR_KEY);
    let events = 0;
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const { data, hasMore } = await this.readPage(after);
      for (const event of data) {
        await this.handle(event).catch((error: unknown) => this.passOver(event, error));
        after = event.id;
      }
      events += data.length;
      if (data.length > 0) await this.storeCursor(ctx, after);
      if (!hasMore) break;
    }
    return { events };
  }

  /** Handling an event again changes nothing, so an unknown position leads to the first event. */
  private async readPage(after: string | undefined) {
    return this.client.events.page({ after, limit: 100 }).catch((error: unknown) => {
      const isUnknown = error instanceof QuittanceError && error.errors.some(({ code }) => code === 'UNKNOWN_EVENT');
      if (!isUnknown) throw error;
      // Quittance was restored from an older backup, or the key is now another project's.
      return this.client.events.page({ limit: 100 });
    });
  }

  /** One order that cannot be settled must not keep the others waiting; while Quittance does not answer, none is passed over. */
  private passOver(event: WebhookEvent, error: unknown): void {
    if (error instanceof QuittanceError && !NOT_SHOWN.includes(error.code)) throw error;
    Logger.error(`${event.type} ${event.id} was skipped; check its order: ${error}`, loggerCtx);
  }

  private async storeCursor(ctx: RequestContext, after: unknown): Promise<void> {
    const { result, error } = await this.settings.set(ctx, CURSOR_KEY, after as never);
    if (!result) throw new Error(`the position in the feed was not stored: ${error}`);
  }

  private async settle(tx: RequestContext, { payment, stored }: Found, invoice: InvoiceWithPayment): Promise<void> {
    if (!isFulfillable(invoice, stored.externalId) || payment.state === 'Settled') return;
    const { txId = '', late = false } = invoice.payment.transaction ?? {};
    const paid = `${invoice.payment.payableAmount} USDT in transaction ${txId}`;
    const { state, currencyCode } = payment.order;
    const isSameCurrency = stored.currency === toPriceCurrency(currencyCode);
    if (payment.state !== 'AwaitingTransfer' || !PAYABLE.includes(state) || !isSameCurrency) {
      const wanted = isSameCurrency ? '' : ` for ${stored.currency ?? 'USDT'}`;
      const states = `the order is ${state} in ${currencyCode}, and the payment is ${payment.state}${wanted}`;
      await this.note(
        tx,
        { payment, stored },
        'unwanted',
        `PAID AND NOT SETTLED: ${paid} arrived, but ${states}. Deliver the order, or send the money back.`,
      );
      return;
    }
    if (late) await this.note(tx, { payment, stored }, 'late', `Paid late: ${paid}.`);
    const result = await this.orders.settlePayment(tx, payment.id);
    if (isGraphQlErrorResult(result)) {
      const text = `PAID AND NOT SETTLED: ${paid} arrived, but ${result.message}`;
      await this.note(tx, { payment, stored }, 'refused', text);
      return;
    }
    const left = await this.amountLeft(tx, payment.order.id);
    if (left === 0) return;
    const difference = `${formatMinor(Math.abs(left), this.precision)} ${currencyCode}`;
    const text =
      left < 0
        ? `PAID TOO MUCH: ${paid} arrived. The order's payments are now ${difference} more than the total. Send the difference back.`
        : `PAID TOO LITTLE: ${paid} arrived. The order's payments are now ${difference} less than the total. Do not deliver before the customer has paid the difference.`;
    await this.note(tx, { payment, stored }, 'changed', text);
  }

  private async noteEvent(
    tx: RequestContext,
    found: Found,
    type: string,
    { txId, amount, transferId }: Data,
  ): Promise<void> {
    const transfer = `${amount} USDT in transaction ${txId}`;
    if (type === 'transfer.duplicate') {
      await this.note(tx, found, `duplicate ${transferId}`, `PAID TWICE: another ${transfer}. Send the money back.`);
    } else if (type === 'transfer.unmatched') {
      const text = `${transfer} arrived, probably for this order. It doesn't pay the invoice.`;
      await this.note(tx, found, `unmatched ${transferId}`, text);
    } else if (type === 'transfer.refunded') {
      await this.note(tx, found, `refunded ${transferId}`, `Sent back: ${transfer}.`);
    } else if (type === 'invoice.pending') {
      await this.note(
        tx,
        found,
        'orphaned',
        'The block with the payment was orphaned, so the invoice waits for payment again.',
      );
    }
  }

  /** Tells the merchant in the order's history, once. */
  private async note(tx: RequestContext, { payment, stored }: Found, key: string, text: string): Promise<void> {
    if (stored.noted.includes(key)) return;
    stored.noted.push(key);
    await this.save(tx, { payment, stored });
    const entry = {
      ctx: tx,
      orderId: payment.order.id,
      type: HistoryEntryType.ORDER_NOTE,
      data: { note: text },
    } as const;
    await this.history.createHistoryEntryForOrder(entry, false);
    Logger.warn(`order ${payment.order.code}: ${text}`, loggerCtx);
  }

  private async save(tx: RequestContext, { payment, stored }: Found): Promise<void> {
    payment.metadata = toMetadata(stored);
    await this.connection.getRepository(tx, Payment).update(payment.id, { metadata: payment.metadata });
  }
}
