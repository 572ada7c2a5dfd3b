import fc from 'fast-check';
import { apiRequests } from './api-requests.ts';
import type { OpenApi } from './openapi.ts';
import { lastRequest, markerRequests, OTHER_ROUTES, otherRequests, strangePaths } from './other-requests.ts';
import type { Ending, Exchange, Shot } from './shot.ts';
import { wildEndings } from './wild.ts';

const MOST_SHOTS = 8;

/** Generates the requests of one connection: pipelined, cut into pieces anywhere, with an ending. */
export function exchanges(document: OpenApi): fc.Arbitrary<Exchange> {
  const api = apiRequests(document);
  const requests = fc.oneof(
    { weight: 6, arbitrary: api },
    { weight: 5, arbitrary: otherRequests },
    { weight: 2, arbitrary: markerRequests },
    { weight: 1, arbitrary: strangePaths },
  );
  const endings: fc.Arbitrary<Ending> = fc.oneof(
    { weight: 8, arbitrary: fc.constant({ kind: 'close' } as const) },
    { weight: 2, arbitrary: wildEndings(api.map(({ text }) => text)) },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('leaves' as const), afterBytes: fc.nat(3000), hard: fc.boolean() }),
    },
  );
  return fc
    .record({
      shots: fc.array(requests, { minLength: 1, maxLength: MOST_SHOTS }),
      ending: endings,
      last: fc.uuid(),
      // In thousandths of the length. Most connections arrive in one piece.
      cuts: fc.oneof(fc.constant<number[]>([]), fc.array(fc.nat(1000), { maxLength: 6 })),
    })
    .map(({ shots, ending, last, cuts }) => ({
      shots:
        ending.kind === 'close' ? [...shots, lastRequest(last)] : ending.kind === 'leaves' ? [...shots, STREAM] : shots,
      ending,
      cuts: [...new Set(cuts)].sort((a, b) => a - b),
    }));
}

/** Has no end, so it's only requested by a client that disconnects. */
const STREAM: Shot = {
  kind: 'page live stream',
  method: 'GET',
  route: OTHER_ROUTES.live,
  text: 'GET /c/{{pendingToken}}/live HTTP/1.1\r\nHost: q\r\n\r\n',
  isMalformed: false,
  proof: { kind: 'none' },
};
