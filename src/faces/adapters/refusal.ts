/** A refused request; the response has the form that the adapter's system uses. `code` is an epusdt code. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: number;
  /** Whether no adapter matches the request and its signature. */
  readonly isUnknown: boolean;

  constructor(code: number, message: string, { isUnknown = false } = {}) {
    super(message);
    this.code = code;
    this.isUnknown = isUnknown;
  }
}

/** The error codes of epusdt and its successor, because shops look them up in those systems' documentation. */
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

/** The response is the same if the adapter doesn't exist, if it's disabled, and if the signature is wrong. */
export function notHere(): Refusal {
  return new Refusal(
    CODES.signature,
    "signature verification failed: check the adapter's URL, the pid and the secret, and make sure that the adapter is enabled",
    { isUnknown: true },
  );
}
