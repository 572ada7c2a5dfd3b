import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { microUsdt, parseAmount } from '../../src/core/domain/money.ts';
import { codeWords, isCodeWord, wordRange } from '../../src/core/domain/policy.ts';
import { createTestProject, startTestService, type TestService } from '../support/service.ts';
import { created, expectProblem, fieldsOf, get, order, post } from './ask.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ addressCount: 2 });
});
afterAll(() => service.stop());

/** Returns the payable amount in micro-USDT, read from its digits without our own parser. */
async function payableMicro(invoiceId: string, project = service.project): Promise<bigint> {
  const { payment } = (await get(service, `/v1/invoices/${invoiceId}?expand=payment`, project)).body;
  expect(payment.payableAmount).toMatch(/^(0|[1-9][0-9]*)\.[0-9]{6}$/);
  return BigInt(payment.payableAmount.replace('.', ''));
}

describe('accepted: ^(0|[1-9][0-9]{0,11})(\\.[0-9]{1,6})?$ and greater than 0', () => {
  test.each([
    ['25', '25.000000'],
    ['25.00', '25.000000'],
    ['0.000001', '0.000001'],
    ['0.1', '0.100000'],
    ['1.234567', '1.234567'],
    ['999999999999', '999999999999.000000'],
    ['999999999999.999999', '999999999999.999999'],
    ['100000000000', '100000000000.000000'],
    ['9007199254.740993', '9007199254.740993'],
  ])('%s', async (amount, requestedAmount) => {
    const { invoiceId } = await created(service, { body: order({ amount }) });
    const { payment } = (await get(service, `/v1/invoices/${invoiceId}?expand=payment`)).body;
    expect(payment.requestedAmount).toBe(requestedAmount);
  });
});

describe('refused with the reason', () => {
  test.each([
    ['more than 6 decimals', '1.0000000'],
    ['more than 6 decimals', '1.2345678'],
    ['leading zeros', '01'],
    ['leading zeros', '00.5'],
    ['.5', '.5'],
    ['5.', '5.'],
    ['a sign', '+25'],
    ['a sign', '-25'],
    ['a sign', '-0'],
    ['an exponent', '1e3'],
    ['an exponent', '1E-6'],
    ['whitespace', ' 25'],
    ['whitespace', '25 '],
    ['whitespace', '2 5'],
    ['whitespace', '25\n'],
    ['whitespace', '\t25'],
    ['whitespace', '25\u00a0'],
    ['not positive', '0'],
    ['not positive', '0.0'],
    ['not positive', '0.000000'],
    ['empty', ''],
    ['13 digits', '1000000000000'],
    ['thousands of digits', '9'.repeat(15_000)],
    ['a comma', '25,00'],
    ['a thousands separator', '1,000.00'],
    ['two points', '1.2.3'],
    ['hexadecimal', '0x19'],
    ['infinite', 'Infinity'],
    ['not a number', 'NaN'],
    ['an underscore', '1_000'],
    ['a currency', '25 USDT'],
    ['Unicode digits', '２５'],
    ['Unicode digits', '٢٥'],
    ['Unicode digits', '25.0０'],
    ['a Unicode point', '25․00'],
    ['NUL', '25\u0000'],
    ['a byte order mark', '\ufeff25'],
  ])('%s: %j', async (_reason, amount) => {
    const problem = expectProblem(await post(service, { body: order({ amount }) }), 400, 'INVALID_REQUEST');
    expect(fieldsOf(problem)).toEqual(['amount']);
    expect(JSON.stringify(problem).length).toBeLessThan(2000);
  });

  test('each reason has a code and a message of its own', async () => {
    const amounts = ['1.0000000', '01', '.5', '5.', '+1', '1e3', ' 1', '0', '', '1000000000000', '２５'];
    const errors = await Promise.all(
      amounts.map(async (amount) => (await post(service, { body: order({ amount }) })).body.errors[0]),
    );
    expect(new Set(errors.map(({ code }) => code)).size).toBe(amounts.length);
    expect(new Set(errors.map(({ message }) => message)).size).toBe(amounts.length);
  });

  test('numbers instead of strings', async () => {
    const problem = expectProblem(await post(service, { body: order({ amount: 25 }) }), 400, 'INVALID_REQUEST');
    expect(problem.errors[0].message).toMatch(/string/);
  });
});

describe('payable amount (tail)', () => {
  test('is the requested amount plus a tail of less than maxSurcharge, and a code word', async () => {
    for (const amount of ['25.00', '0.01', '0.000001', '19.99', '1.234567', '999999999999.999999', '0.999999']) {
      const { invoiceId } = await created(service, { body: order({ amount }) });
      const requested = parseAmount(amount);
      if (requested.kind !== 'ok') throw new Error(requested.reason);
      const payable = await payableMicro(invoiceId);
      expect(payable).toBeGreaterThanOrEqual(requested.amountMicro);
      expect(payable - requested.amountMicro).toBeLessThan(10_000n);
      expect(isCodeWord(payable), String(payable)).toBe(true);
      expect(payable % 10n).not.toBe(0n);
    }
  });

  test('is chosen at random among the free ones', async () => {
    const payables: bigint[] = [];
    for (let i = 0; i < 12; i++) payables.push(await payableMicro((await created(service)).invoiceId));
    const first = codeWords(wordRange(microUsdt(25_000_000n), 10_000n)).slice(0, 12);
    expect(payables).not.toEqual(first);
    expect(payables).not.toEqual(payables.toSorted((a, b) => (a < b ? -1 : 1)));
  });

  test('overlapping ranges of neighbouring amounts never share a payable amount', async () => {
    const project = await createTestProject(service.db, { maxSurchargeMicro: 100n });
    const amounts = Array.from({ length: 40 }, (_, index) => `7.0000${String(10 + index)}`);
    const replies = await Promise.all(amounts.map((amount) => post(service, { project, body: order({ amount }) })));
    const made = replies.filter(({ status }) => status === 201);
    for (const refused of replies.filter(({ status }) => status !== 201)) {
      expectProblem(refused, 409, 'AMOUNT_UNAVAILABLE');
    }
    const payables = await Promise.all(made.map(({ body }) => payableMicro(body.invoiceId, project)));
    expect(new Set(payables).size).toBe(made.length);
    expect(made.length).toBeGreaterThan(9);
  });

  test('(address, payable amount) is unique: two projects may share an amount, never an address', async () => {
    const other = await createTestProject(service.db, { addressCount: 2 });
    const read = async (project: typeof other) => {
      const { invoiceId } = await created(service, { project });
      return (await get(service, `/v1/invoices/${invoiceId}?expand=payment`, project)).body.payment.address;
    };
    expect(other.addresses).toContain(await read(other));
    expect(service.project.addresses).toContain(await read(service.project));
  });
});
