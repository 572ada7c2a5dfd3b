import { type Static, Type } from '../../runtime/type.ts';
import { ADAPTER_KINDS } from '../../store/outbox/adapter-orders.ts';
import { nullable, Time } from '../view.ts';

const text = Type.String();
const source = Type.Object({
  ...{ origin: text, url: text, path: text, timePath: nullable(text), min: text, max: text, maxAge: text },
  ...{ at: Time, ageSeconds: Type.Integer(), isTooOld: Type.Boolean() },
});
const adapter = {
  ...{ adapterId: text, projectId: text, network: text, kind: Type.Enum([...ADAPTER_KINDS]) },
  ...{ currency: text, rate: text, rateMin: text, rateMax: text, rateSource: nullable(source), path: text },
};

/**
 * An adapter. `rate`: the price of one USDT in `currency`, which stays within `rateMin` to `rateMax`. `rateSource`: where it is read, the time that it is of, and whether that is too long
 * ago for an order; `null`: it is fixed. `path`: of its URL, behind that of the service. `callbacksDisabledAt`: it takes no orders until
 * `webhook enable`.
 */
export const AdapterView = Type.Object({
  ...{ ...adapter, createdAt: Time, disabledAt: nullable(Time), callbacksDisabledAt: nullable(Time) },
});
export type AdapterView = Static<typeof AdapterView>;

/** `secret`: one that was made for it, which is shown this one time. */
export const EnabledAdapterView = Type.Object({ ...adapter, pid: text, secret: nullable(text) });
export type EnabledAdapterView = Static<typeof EnabledAdapterView>;

export const AdapterListView = Type.Object({ data: Type.Array(AdapterView) });
export type AdapterListView = Static<typeof AdapterListView>;

export const DisabledAdapterView = Type.Object({ adapterId: text });
export type DisabledAdapterView = Static<typeof DisabledAdapterView>;
