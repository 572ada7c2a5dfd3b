import type pg from 'pg';
import { SECRET, type ShopAdapter, signAsShop } from '../adapters/fixture.ts';
import { type Answer, call } from '../support/service.ts';
import type { AdapterOperation, ModelAdapter, Outcome } from './model.ts';
import { findReserved, NOTHING, uuidOf } from './outcome.ts';

type Deps = { database: pg.Pool; client: string; adapters: readonly (ShopAdapter & Pick<ModelAdapter, 'dialect'>)[] };
type Asked = Exclude<AdapterOperation, { kind: 'disable' | 'rate' }>;

const NOTIFY_URL = 'https://shop.example/notify';

/** Makes requests like a shop that uses another protocol, and returns the outcomes. */
export function createAdapterRunner({ database, client, adapters }: Deps) {
  const ask = (url: string, form?: Record<string, string>): Promise<Answer> => {
    const headers = { 'x-forwarded-for': client };
    if (form === undefined) return call(url, { headers });
    const type = { 'content-type': 'application/x-www-form-urlencoded' };
    return call(url, { method: 'POST', headers: { ...headers, ...type }, body: String(new URLSearchParams(form)) });
  };
  return async (operation: Asked): Promise<Outcome> => {
    const adapter = adapters[operation.adapter];
    if (adapter === undefined) throw new Error(`there is no adapter ${operation.adapter}`);
    const { dialect, url } = adapter;
    if (operation.kind === 'trade') {
      const path =
        dialect === 'epay'
          ? `/api.php?act=order&pid=1000&key=${SECRET}&trade_no=${operation.invoiceId}`
          : `/pay/check-status/${operation.invoiceId}`;
      return outcomeOf(await ask(url + path), dialect);
    }
    const outcome = outcomeOf(await ask(url + PATHS[dialect], formOf(operation, dialect)), dialect);
    if (outcome.invoice === null) return outcome;
    const found = await findReserved(database, outcome.invoice.invoiceId);
    // The answer's own values take precedence; EPay's answer contains only the page's URL.
    const { externalId, expiresAt, createdMs } = found;
    return {
      ...outcome,
      invoice: { ...outcome.invoice, externalId: outcome.invoice.externalId || externalId, expiresAt },
      reserved: { ...(outcome.reserved ?? found), createdMs },
    };
  };
}

const PATHS: Readonly<Record<ModelAdapter['dialect'], string>> = {
  epusdt: '/api/v1/order/create-transaction',
  gmpay: '/payments/gmpay/v1/order/create-transaction',
  epay: '/mapi.php',
};

function formOf(operation: Extract<Asked, { kind: 'order' }>, dialect: ModelAdapter['dialect']) {
  const { orderId, isForged, isInvalid } = operation;
  const amount = isInvalid ? `0${operation.amount}` : operation.amount;
  const order: Record<string, string> =
    dialect === 'epay'
      ? { pid: '1000', type: 'usdt', out_trade_no: orderId, notify_url: NOTIFY_URL, money: amount, name: 'one' }
      : { ...(dialect === 'gmpay' ? { pid: '1000' } : {}), order_id: orderId, amount, notify_url: NOTIFY_URL };
  const signature = signAsShop(order, isForged ? `${SECRET}x` : SECRET);
  return dialect === 'epay' ? { ...order, sign: signature, sign_type: 'MD5' } : { ...order, signature };
}

function outcomeOf({ status, body }: Answer, dialect: ModelAdapter['dialect']): Outcome {
  const code = String(dialect === 'epay' ? body.code : body.status_code);
  const data = dialect === 'epay' ? body : body.data;
  const invoiceId = data?.trade_id ?? data?.trade_no;
  if (invoiceId === undefined) return { ...NOTHING, status, code };
  // Throws if it isn't one of our ids.
  uuidOf(invoiceId);
  const address = data.receive_address ?? data.token;
  return {
    ...{ ...NOTHING, status, code },
    invoice: { invoiceId, externalId: data.order_id ?? '', status: String(data.status), expiresAt: '' },
    reserved:
      data.actual_amount === undefined
        ? null
        : { address, payableMicro: BigInt(Math.round(data.actual_amount * 1_000_000)) },
  };
}
