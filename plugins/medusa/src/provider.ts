import type {
  AuthorizePaymentInput,
  AuthorizePaymentOutput,
  CancelPaymentInput,
  CancelPaymentOutput,
  CapturePaymentInput,
  CapturePaymentOutput,
  GetPaymentStatusOutput,
  InitiatePaymentInput,
  InitiatePaymentOutput,
  Logger,
  PaymentProviderInput,
  ProviderWebhookPayload,
  RefundPaymentInput,
  RefundPaymentOutput,
  RetrievePaymentOutput,
  UpdatePaymentInput,
  UpdatePaymentOutput,
  WebhookActionResult,
} from '@medusajs/framework/types';
import {
  AbstractPaymentProvider,
  BigNumber,
  MedusaError,
  ModuleProvider,
  Modules,
  PaymentActions,
  PaymentSessionStatus,
} from '@medusajs/framework/utils';
import { type Quittance, QuittanceError, WebhookVerificationError, webhooks } from '@quittance/sdk';
import {
  type Asked,
  createClient,
  describeRefusal,
  externalIdOf,
  isAsked,
  type QuittanceOptions,
  readAmount,
  readExternalId,
  toInput,
} from './invoice';

const { INVALID_DATA, NOT_ALLOWED, UNEXPECTED_STATE } = MedusaError.Types;
const NOT_SUPPORTED: WebhookActionResult = { action: PaymentActions.NOT_SUPPORTED };

/** USDT on TRON, by a Quittance. A session has one invoice; it is captured when that is `PAID`, and never before. */
export class QuittanceProvider extends AbstractPaymentProvider<QuittanceOptions> {
  static override identifier = 'quittance';
  private readonly logger: Logger;
  private readonly client: Quittance;

  static override validateOptions(options: Partial<QuittanceOptions>): void {
    const { url, apiKey, webhookSecrets } = options;
    if (url && apiKey && Array.isArray(webhookSecrets) && webhookSecrets.length > 0) return;
    throw new MedusaError(INVALID_DATA, 'quittance-medusa needs the options url, apiKey and webhookSecrets');
  }

  constructor(cradle: { logger: Logger }, options: QuittanceOptions) {
    super(cradle, options);
    this.logger = cradle.logger;
    this.client = createClient(options);
  }

  async initiatePayment({
    amount,
    currency_code,
    data,
    context,
  }: InitiatePaymentInput): Promise<InitiatePaymentOutput> {
    // Of `data` the rest is the customer's; Medusa sets this one itself, and the key too.
    const sessionId = data?.['session_id'];
    if (typeof sessionId !== 'string' || context?.idempotency_key !== sessionId) {
      throw new MedusaError(UNEXPECTED_STATE, 'quittance: the payment session has no id');
    }
    const made = await this.makeInvoice(sessionId, amount, currency_code);
    return { id: made.invoiceId, status: PaymentSessionStatus.PENDING, data: made };
  }

  /** The same amount keeps its invoice. */
  async updatePayment({ amount, currency_code, data = {} }: UpdatePaymentInput): Promise<UpdatePaymentOutput> {
    const { sessionId, externalId } = this.readData(data);
    const attempt = readExternalId(externalId)?.attempt ?? 0;
    if (externalId === externalIdOf(sessionId, this.readAmount(amount, currency_code), attempt)) return { data };
    // In this order, the session keeps its page if there can be no other, such as without a rate.
    const made = await this.makeInvoice(sessionId, amount, currency_code, attempt + 1);
    await this.withdraw(data);
    return { data: made };
  }

  async authorizePayment({ data = {}, context }: AuthorizePaymentInput): Promise<AuthorizePaymentOutput> {
    // Until Medusa has stored what `initiatePayment` returned, `data` is the customer's, who could name the paid invoice of another session.
    // The key is this session's id, which Medusa sets.
    if (context?.idempotency_key !== data['session_id']) {
      throw new MedusaError(UNEXPECTED_STATE, 'quittance: the data is not from this payment session');
    }
    return { data, status: await this.readStatus(data) };
  }

  async getPaymentStatus({ data = {} }: PaymentProviderInput): Promise<GetPaymentStatusOutput> {
    return { data, status: await this.readStatus(data) };
  }

  /** The money is on the merchant's address: there is nothing to do but to look whether that is so. */
  async capturePayment({ data = {} }: CapturePaymentInput): Promise<CapturePaymentOutput> {
    if ((await this.readStatus(data)) === PaymentSessionStatus.CAPTURED) return { data };
    throw new MedusaError(NOT_ALLOWED, 'quittance: the invoice is not PAID, so nothing was captured');
  }

  async cancelPayment({ data = {} }: CancelPaymentInput): Promise<CancelPaymentOutput> {
    await this.withdraw(data);
    return { data };
  }

  async deletePayment({ data = {} }: PaymentProviderInput): Promise<CancelPaymentOutput> {
    // Of a session whose start failed, Medusa gives only what the customer sent.
    if (typeof data['session_id'] === 'string') await this.withdraw(data);
    return { data };
  }

  async refundPayment(_input: RefundPaymentInput): Promise<RefundPaymentOutput> {
    throw new MedusaError(
      NOT_ALLOWED,
      'Quittance holds no money, so it cannot refund payments. Send the USDT from your own wallet, and add the transaction to the order.',
    );
  }

  async retrievePayment({ data = {} }: PaymentProviderInput): Promise<RetrievePaymentOutput> {
    const { invoiceId } = this.readData(data);
    return { data: { ...data, ...(await this.client.invoices.get(invoiceId, { expand: 'payment' })) } };
  }

  /** What is refused here changes nothing: Medusa has answered 200 before. */
  async getWebhookActionAndData(payload: ProviderWebhookPayload['payload']): Promise<WebhookActionResult> {
    const { webhookSecrets, projectId } = this.config;
    const headers = payload.headers as Record<string, string | string[] | undefined>;
    const event = await webhooks
      .verify(payload.rawData as Buffer, headers, [...webhookSecrets], { projectId })
      .catch((error: unknown) => {
        if (!(error instanceof WebhookVerificationError)) throw error;
        this.logger.warn(`quittance: rejected a webhook: ${error.code}`);
        return null;
      });
    if (event === null || !event.type.startsWith('invoice.')) return NOT_SUPPORTED;
    const { invoiceId } = event.data as { invoiceId: string };
    const invoice = await this.client.invoices.get(invoiceId, { expand: 'payment' });
    const asked = readExternalId(invoice.externalId);
    if (asked === null || !isAsked(invoice, invoice.externalId)) return NOT_SUPPORTED;
    const data = { session_id: asked.sessionId, amount: new BigNumber(asked.amount) };
    return { action: invoice.status === 'PAID' ? PaymentActions.SUCCESSFUL : PaymentActions.PENDING, data };
  }

  private async makeInvoice(sessionId: string, amount: unknown, currency: string, attempt = 1) {
    const asked = this.readAmount(amount, currency);
    const externalId = externalIdOf(sessionId, asked, attempt);
    const input = { ...toInput(asked), asset: 'USDT', network: 'TRON', externalId } as const;
    const refuse = (error: unknown) => this.refuse(error, asked.currency);
    const invoice = await this.client.invoices.create(input, { idempotencyKey: externalId }).catch(refuse);
    const { invoiceId, checkoutUrl, expiresAt } = invoice;
    return { session_id: sessionId, externalId, invoiceId, ...asked, checkoutUrl, expiresAt };
  }

  private readAmount(amount: unknown, currency: string): Asked {
    try {
      // Medusa gives a number, a string or a BigNumber.
      return readAmount(new BigNumber(amount as never), currency);
    } catch (error) {
      throw new MedusaError(INVALID_DATA, error instanceof Error ? error.message : String(error));
    }
  }

  private readData({ session_id, externalId, invoiceId }: Record<string, unknown>) {
    if (typeof session_id !== 'string' || typeof externalId !== 'string' || typeof invoiceId !== 'string') {
      throw new MedusaError(UNEXPECTED_STATE, 'quittance: the payment session has no invoice');
    }
    return { sessionId: session_id, externalId, invoiceId };
  }

  /** Throws if the invoice that `data` names isn't the session's. */
  private async readInvoice(data: Record<string, unknown>) {
    const { sessionId, externalId, invoiceId } = this.readData(data);
    const invoice = await this.client.invoices.get(invoiceId, { expand: 'payment' });
    const isOurs = readExternalId(externalId)?.sessionId === sessionId && isAsked(invoice, externalId);
    if (!isOurs)
      throw new MedusaError(
        UNEXPECTED_STATE,
        `quittance: ${invoiceId} is not the invoice of the payment session ${sessionId}`,
      );
    return invoice;
  }

  private async readStatus(data: Record<string, unknown>): Promise<PaymentSessionStatus> {
    const { status } = await this.readInvoice(data);
    return status === 'PAID' ? PaymentSessionStatus.CAPTURED : PaymentSessionStatus.PENDING;
  }

  /** A session whose invoice is paid is kept. */
  private async withdraw(data: Record<string, unknown>): Promise<void> {
    try {
      const { invoiceId } = await this.readInvoice(data);
      await this.client.invoices.withdraw(invoiceId);
    } catch (error) {
      // Quittance lost it in a restore, or the key is now another project's: it asks for nothing.
      if (error instanceof QuittanceError && error.code === 'INVOICE_NOT_FOUND') return;
      this.refuse(error);
    }
  }

  private refuse(error: unknown, currency?: string): never {
    if (!(error instanceof QuittanceError)) throw error;
    this.logger.error(`quittance: ${error.code} ${error.message} ${error.requestId}`);
    throw new MedusaError(NOT_ALLOWED, describeRefusal(error, currency));
  }
}

export default ModuleProvider(Modules.PAYMENT, { services: [QuittanceProvider] });
