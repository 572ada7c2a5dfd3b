import { expect, test } from 'vitest';
import {
  describePayment,
  describeTransfer,
  EVENT_TYPE_WIDTH,
  EVENT_TYPES,
  eventBody,
  INVOICE_EVENTS,
  MISSABLE_TYPES,
  projectInvoice,
  REPLAYED_TYPES,
  type SeenTransfer,
} from './event.ts';
import { INVOICE_STATUSES } from './invoice.ts';
import { microUsdt } from './money.ts';
import { unixMs } from './time.ts';

const UUID = '01890a5d-ac96-774b-bcce-b302099a8057';
const SUFFIX = '01h455vb4pex5vsknk084sn02q';
const AT = unixMs(Date.UTC(2026, 8, 1, 12));
const ISO = '2026-09-01T12:00:00.000Z';
const SEEN: SeenTransfer = {
  txId: '0a'.repeat(32),
  logIndex: 1,
  blockNumber: 100,
  blockTime: AT,
  from: 'TFrom',
  amountMicro: microUsdt(25_000_009n),
};

test('each status has an event, and every event its own name', () => {
  expect(Object.keys(INVOICE_EVENTS).sort()).toEqual([...INVOICE_STATUSES].sort());
  expect(EVENT_TYPES).toEqual([
    'invoice.pending',
    'invoice.confirming',
    'invoice.paid',
    'invoice.expired',
    'transfer.unmatched',
    'transfer.duplicate',
    'transfer.refunded',
    'transfer.claimed',
    'transfer.resolved',
    'endpoint.disabled',
    'ping',
  ]);
});

test('an invoice is told in exactly five fields', () => {
  const invoice = { id: UUID, externalId: 'order-1', status: 'PAID', checkoutToken: 'abc', expiresAt: AT } as const;
  expect(projectInvoice(invoice, 'https://pay.example')).toEqual({
    invoiceId: `inv_${SUFFIX}`,
    externalId: 'order-1',
    status: 'PAID',
    checkoutUrl: 'https://pay.example/c/abc',
    expiresAt: ISO,
  });
});

test('a payment is told with its transaction and how many blocks confirm it, one at least', () => {
  const invoice = { requestedMicro: microUsdt(25_000_000n), payableMicro: microUsdt(25_000_009n), address: 'THere' };
  const detail = { requestedAmount: '25.000000', payableAmount: '25.000009', address: 'THere' };
  expect(describePayment(invoice, null)).toEqual({ ...detail, transaction: null });
  for (const [headNumber, confirmations] of [
    [99, 1],
    [100, 1],
    [101, 2],
  ] as const) {
    expect(describePayment(invoice, { ...SEEN, late: true, headNumber })).toEqual({
      ...detail,
      transaction: {
        txId: SEEN.txId,
        logIndex: 1,
        blockNumber: 100,
        blockTime: ISO,
        from: 'TFrom',
        amount: '25.000009',
        late: true,
        confirmations,
      },
    });
  }
});

test('a transfer is told with the invoice that was paid before, if there is one', () => {
  const reported = {
    transferId: `trf_${SUFFIX}`,
    txId: SEEN.txId,
    logIndex: 1,
    blockNumber: 100,
    blockTime: ISO,
    from: 'TFrom',
    to: 'THere',
    amount: '25.000009',
  };
  const transfer = { ...SEEN, id: UUID, to: 'THere' };
  const unmatched = describeTransfer({ ...transfer, invoiceId: null });
  expect(unmatched).toEqual(reported);
  expect(unmatched).not.toHaveProperty('invoiceId');
  expect(describeTransfer({ ...transfer, invoiceId: UUID })).toEqual({ ...reported, invoiceId: `inv_${SUFFIX}` });
});

test('the bytes of an event are those', () => {
  const event = { id: UUID, type: 'ping', timestamp: AT, projectId: UUID, sequence: 1, data: { a: 1 } } as const;
  expect(eventBody(event)).toBe(
    `{"id":"evt_${SUFFIX}","type":"ping","timestamp":"${ISO}","projectId":"prj_${SUFFIX}","network":"TRON","sequence":1,"data":{"a":1}}`,
  );
});

test('a ping is over once it was sent, and that an endpoint was disabled is missed by no other one', () => {
  expect(EVENT_TYPES.filter((type) => !MISSABLE_TYPES.includes(type))).toEqual(['endpoint.disabled', 'ping']);
  expect(EVENT_TYPES.filter((type) => !REPLAYED_TYPES.includes(type))).toEqual(['ping']);
  expect(EVENT_TYPE_WIDTH).toBe('transfer.duplicate'.length);
});
