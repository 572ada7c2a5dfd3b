import { type Static, Type } from '../../runtime/type.ts';
import { nullable, Time } from '../view.ts';

const [text, count] = [Type.String(), Type.Integer()];

const request = {
  ...{ requestId: text, time: Time, projectId: nullable(text) },
  key: nullable(Type.Object({ keyId: text, name: text })),
  ...{ method: text, route: nullable(text), status: count, code: nullable(text), externalId: nullable(text) },
  tookMs: count,
};
/** `projectId` and `key` are `null` where no valid key came with it; `route` where there is nothing at the URL. */
export const RequestView = Type.Object(request);
export type RequestView = Static<typeof RequestView>;

/** `looked`: how many were looked through. `nextBefore`: what the next page begins before, `null` on the last one. */
export const RequestListView = Type.Object({
  ...{ data: Type.Array(RequestView), looked: count, nextBefore: nullable(text) },
});
export type RequestListView = Static<typeof RequestListView>;

/** `invoiceId`: the invoice that the externalId has today, if any. */
export const ShownRequestView = Type.Object({ ...request, invoiceId: nullable(text) });
export type ShownRequestView = Static<typeof ShownRequestView>;
