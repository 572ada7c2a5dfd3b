import { encodeId } from '../../domain/ids.ts';
import type { Explanation, Step } from './explanation.ts';
import type { Subject } from './read-subject.ts';

export type Transaction = Extract<Subject, { form: 'transaction' }>;

const PREFIX_NOTE = 'TRON writes transaction ids without 0x; with it, it may be a transaction of another chain';

export function describeTransaction({ txId, hasEthereumPrefix }: Transaction): Pick<Explanation, 'subject' | 'fields'> {
  return {
    subject: { form: 'transaction', txId, ...(hasEthereumPrefix ? { note: PREFIX_NOTE } : {}) },
    fields: [
      ['transaction', txId],
      ['note', hasEthereumPrefix ? PREFIX_NOTE : null],
    ],
  };
}

/** The rest is told of the invoice (UUID) that a transaction is for. */
export function stepToInvoice(id: string): Step {
  return { says: 'all about the invoice', hint: { command: 'explain', args: [encodeId('inv', id)] } };
}
