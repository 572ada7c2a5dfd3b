import type { Adapter } from '../store/outbox/adapter-orders.ts';
import { type Fields, startedField } from '../webhooks/adapter-signature.ts';
import { CODES, Refusal } from './refusal.ts';

/** What happens to a field of a rival's protocol. Empty fields count as left out. */
type Decision = 'used' | { ignored: string } | { refused: string };
type Form = Readonly<Record<string, Decision>>;

const ADDRESS = { refused: 'the operator sets the receiving addresses' };
const RATE = { refused: 'the operator sets the rate' };
const ONE_METHOD = { ignored: 'there is one way to pay: USDT on TRON' };
const ABOUT_THE_PAYER = { ignored: 'the page adapts to the browser, and Quittance stores nothing about payers' };

const used = <Name extends string>(...names: Name[]) =>
  Object.fromEntries(names.map((name) => [name, 'used'])) as Record<Name, 'used'>;

const JSON_ORDER = used('order_id', 'amount', 'notify_url', 'redirect_url', 'name', 'signature');
const BEPUSDT_ORDER = { ...JSON_ORDER, ...used('fiat', 'timeout') };
const BEPUSDT_TRANSACTION = { ...BEPUSDT_ORDER, ...used('trade_type'), address: ADDRESS, rate: RATE };

/**
 * Every field that a request of each protocol can have, and what becomes of it. Any other field is refused by its name: what Quittance does not
 * know could change the meaning of an amount.
 */
export const FORMS = {
  // Plugins for BEpusdt, and those for an early version of the successor, order from it too.
  epusdt: { ...BEPUSDT_TRANSACTION, ...used('currency', 'token', 'network') },
  bepusdtTransaction: BEPUSDT_TRANSACTION,
  bepusdtOrder: { ...BEPUSDT_ORDER, ...used('currencies'), reselect: ONE_METHOD },
  bepusdtCancel: used('trade_id', 'signature'),
  gmpay: { ...JSON_ORDER, ...used('pid', 'currency', 'token', 'network', 'payment_type') },
  epay: {
    ...used('pid', 'type', 'out_trade_no', 'notify_url', 'return_url', 'name', 'money', 'param', 'sign', 'sign_type'),
    ...used('currency', 'fiat', 'token', 'network'),
    address: ADDRESS,
    rate: RATE,
    mid: ADDRESS,
    // The payer carries this request, so a payer who can add to its text must not gain time at a rate.
    timeout: { ignored: 'the project sets how long an order waits' },
    channel_id: ONE_METHOD,
    cid: ONE_METHOD,
    clientip: ABOUT_THE_PAYER,
    device: ABOUT_THE_PAYER,
    sitename: { ignored: 'the page shows the name that the operator gave the project' },
  },
  epayQuery: used('act', 'pid', 'key', 'trade_no', 'out_trade_no'),
} satisfies Record<string, Form>;

/** What shops call USDT on TRON, where one word says both. */
const BOTH = ['usdt', 'usdt.trc20', 'usdt.tron', 'usdt-trc20', 'usdt_trc20', 'usdttrc20', 'trc20'];
const oneOf = (words: readonly string[]) => (value: string) => words.includes(value);

/** The fields that say which coin is wanted, and whether a value of them, in lower case, is USDT on TRON. */
const COINS: Readonly<Record<string, (value: string) => boolean>> = {
  trade_type: oneOf(BOTH),
  type: oneOf(BOTH),
  token: oneOf(['usdt']),
  network: oneOf(['tron', 'trc20']),
  currencies: allowsUsdt,
};

/** Of BEpusdt: `USDT,USDC` allows these, `-ETH,-BNB` all but these. */
function allowsUsdt(list: string): boolean {
  const words = list.split(',').map((word) => word.trim());
  const allowed = words.filter((word) => !word.startsWith('-'));
  return !words.includes('-usdt') && (allowed.length === 0 || allowed.includes('usdt'));
}

/**
 * Refuses a request with a field that its form does not have, or with a text that begins another field when the signed text is read again; an
 * order in another currency, and of anything but USDT on TRON. Throws a `Refusal` that names the field.
 */
export function checkFields(name: keyof typeof FORMS, fields: Fields, { currency }: Pick<Adapter, 'currency'>): void {
  const form: Form = FORMS[name];
  const isField = (field: string) => Object.hasOwn(form, field);
  for (const [field, value] of fields) {
    const decision = isField(field) ? form[field] : undefined;
    if (decision === undefined) refuse(`${show(field)} is not a field of this request: remove it`);
    if (value === '') continue;
    if (typeof decision === 'object' && 'refused' in decision) {
      refuse(`${field} is ${show(value)}, but ${decision.refused}: remove it`);
    }
    const started = startedField(value, isField);
    if (started === null) continue;
    refuse(
      `${field} contains "&${started}=", so the signed text can be read as another ${started}: write ${field} without it. In a URL, put ${started} first, behind the question mark`,
    );
  }
  for (const field of ['currency', 'fiat']) {
    const value = fields.get(field) ?? '';
    if (value === '' || value.trim().toUpperCase() === currency) continue;
    throw new Refusal(
      CODES.rate,
      `rate calculation failed: ${field} is ${show(value)}, but this adapter has a rate for ${currency} only: send ${field} ${show(currency)}, or ask the operator for an adapter in that currency`,
    );
  }
  for (const [field, isUsdtOnTron] of Object.entries(COINS)) {
    const value = fields.get(field) ?? '';
    if (value === '' || isUsdtOnTron(value.trim().toLowerCase())) continue;
    throw new Refusal(
      CODES.asset,
      `supported asset not found: ${field} is ${show(value)}, but this adapter accepts only USDT on TRON (usdt.trc20)`,
    );
  }
}

const show = (text: string) => JSON.stringify(text.slice(0, 64));

function refuse(reason: string): never {
  throw new Refusal(CODES.fields, `failed to parse request params: ${reason}`);
}
