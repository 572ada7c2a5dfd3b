import { expect } from 'vitest';
import { startServerOfTomorrow, TOMORROW } from '../support/server-of-tomorrow.ts';
import {
  createInvoice,
  eventually,
  payExactly,
  readInvoice,
  startTestService,
  type TestService,
} from '../support/service.ts';

export type BothServers = {
  service: TestService;
  /** Runs a client against both servers, and judges the line that it prints. */
  judge(run: (url: string, apiKey: string) => Promise<string>): Promise<void>;
  stop(): Promise<void>;
};

/**
 * Each client creates an invoice, reads it, reads one that doesn't exist, and reads a page of the list and of the feed. It prints the id, the
 * status, the status or code of the refusal, and how many invoices and events it read.
 */
const lineOf = (status: string, code: string) =>
  new RegExp(`^inv_[0-9a-z]{26} ${status} (${code}|404) [1-9]\\d* [1-9]\\s*$`);
const TODAY = lineOf('PENDING', 'INVOICE_NOT_FOUND');
const OF_TOMORROW = lineOf(TOMORROW.status, TOMORROW.code);

/** Starts a service with a paid invoice, and a server of tomorrow in front of it. */
export async function startBothServers(): Promise<BothServers> {
  const service = await startTestService();
  const tomorrow = await startServerOfTomorrow(service.url);
  const { body } = await createInvoice(service);
  await payExactly(service, body.invoiceId);
  service.devnet.mineUntilSolid();
  await eventually(
    () => readInvoice(service, body.invoiceId),
    (invoice) => invoice.body.status === 'PAID',
  );
  return {
    service,
    judge: async (run) => {
      expect(await run(service.url, service.project.apiKey)).toMatch(TODAY);
      expect(await run(tomorrow.url, service.project.apiKey), 'against a server of tomorrow').toMatch(OF_TOMORROW);
    },
    stop: async () => {
      await tomorrow.stop();
      await service.stop();
    },
  };
}
