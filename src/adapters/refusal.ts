/** A request that an adapter refuses in the form of its system. `code`: of epusdt. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: number;
  /** Whether no adapter was found that the request is signed for. */
  readonly isUnknown: boolean;

  constructor(code: number, message: string, { isUnknown = false } = {}) {
    super(message);
    this.code = code;
    this.isUnknown = isUnknown;
  }
}

/** The codes of epusdt and its successor, which shops look up in their documents. */
export const CODES = {
  system: 400,
  signature: 401,
  orderExists: 10002,
  amount: 10004,
  noFreeAmount: 10005,
  rate: 10006,
  noOrder: 10008,
  fields: 10009,
  orderState: 10010,
  network: 10014,
  asset: 10016,
  notifyUrl: 10041,
  returnUrl: 10044,
} as const;

/** No adapter is here, it is switched off, or the request is not signed for it: one and the same answer. */
export function notHere(): Refusal {
  return new Refusal(
    CODES.signature,
    'signature verification failed: check the URL of the adapter, the pid, the secret, and that the adapter is enabled',
    { isUnknown: true },
  );
}
