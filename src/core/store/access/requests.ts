import { NIL_UUID, timeOfId } from '../../domain/ids.ts';
import { type UnixMs, unixMs } from '../../domain/time.ts';
import { commandOf, conditionOf } from '../db/rows-of.ts';

/**
 * An answered request: `{"id": "req_01h4…", "method": "POST", "route": "/v1/invoices", "status": 409, "code": "AMOUNT_UNAVAILABLE",
 * "external_id": "order-1042", "took_ms": 3}`. Members without a value may be left out. `route` is the pattern, never the path, because a
 * path may contain anything. `errors` contains the refused fields, and `body` contains the shape of the body: `{amount: number, externalId:
 * string}`.
 */
export type LoggedRequest = {
  id: string;
  method: string;
  status: number;
  took_ms: number;
  route?: string | undefined;
  code?: string | undefined;
  external_id?: string | undefined;
  errors?: readonly { field: string; code: string }[] | undefined;
  body?: string | undefined;
};

/** 1 to 1,000 requests that arrived within the same second with the same key (UUIDs), or without a valid key (`null`). */
export type RequestBatch = {
  key: { id: string; projectId: string } | null;
  requests: readonly [LoggedRequest, ...LoggedRequest[]];
};

const SECOND_MS = 1000;
const WEEK_MS = 604_800_000;
const SLOTS = 6;

/** Returns the second that a time falls into, because requests are grouped by second. */
export function secondOf(time: UnixMs): UnixMs {
  return unixMs(time - (time % SECOND_MS));
}

/** Returns the partition number for a time. */
export function slotOf(time: UnixMs): number {
  return Math.floor(time / WEEK_MS) % SLOTS;
}

/** The table that the batch `b` is unpacked into, with a row for each request. Ids are compared byte by byte. */
export const UNPACKED = `json_to_recordset(b.requests::json) as r (id text collate "C", method text, route text, status int4, code text,
     external_id text, took_ms int4, errors text, body text)`;

// `JSON.stringify` writes JSON without line breaks, so the batches can be lines of a single text without escaping. The commit waits neither
// for the disk nor for a standby, because that would delay the commits of new invoices.
/** Writes batches. If the server crashes within the next second, they may be lost. Existing batches are left unchanged. */
export const insertRequests = commandOf(
  'requests-insert',
  `insert into requests (slot, at, project_id, key_id, first_id, last_id, count, requests)
   select slot, at, project_id, key_id, first_id, last_id, count, requests
   from (select set_config('synchronous_commit', 'off', true)) as unhurried, unnest($1::int4[], $2::timestamptz[], $3::uuid[], $4::uuid[], $5::text[], $6::text[], $7::int4[], string_to_array($8, e'\\n'))
     as t (slot, at, project_id, key_id, first_id, last_id, count, requests)
   on conflict do nothing`,
  (batches: readonly RequestBatch[]) => {
    const times = batches.map(({ requests }) => timeOfId(requests[0].id));
    const edges = batches.map(({ requests }) => edgesOf(requests));
    return [
      times.map((time) => String(slotOf(time))),
      times.map((time) => new Date(secondOf(time)).toISOString()),
      batches.map(({ key }) => key?.projectId ?? NIL_UUID),
      batches.map(({ key }) => key?.id ?? null),
      edges.map(({ first }) => first),
      edges.map(({ last }) => last),
      batches.map(({ requests }) => String(requests.length)),
      batches.map(({ requests }) => JSON.stringify(requests)).join('\n'),
    ];
  },
);

/** Returns the lowest and the highest id. */
function edgesOf([one, ...others]: RequestBatch['requests']): { first: string; last: string } {
  let [first, last] = [one.id, one.id];
  for (const { id } of others) {
    if (id < first) first = id;
    else if (id > last) last = id;
  }
  return { first, last };
}

/** Deletes the requests of each whole week that ended before a given time. */
export const forgetOldRequests = commandOf(
  'requests-forget-old',
  'select from forget_old_requests($1)',
  (before: UnixMs) => [new Date(before)],
);

/** Whether any partition for one of these times still has requests from before `before`. */
export const holdsOldRequests = conditionOf(
  'requests-old-in-slot',
  'exists (select from requests where slot = any($1::int4[]) and at < $2)',
  (times: readonly UnixMs[], before: UnixMs) => [times.map((time) => String(slotOf(time))), new Date(before)],
);
