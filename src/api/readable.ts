import { assertNever } from '../domain/assert-never.ts';
import type { FoundInvoice } from '../store/ledger/invoices.ts';
import { problemOf } from '../web/problem.ts';
import type { ApiDeps } from './api-deps.ts';

/** The invoice that was found, or `null`. Throws `UNAUTHENTICATED` where the key is not valid any more. */
export function readable(found: FoundInvoice, deps: ApiDeps, keyId: string) {
  switch (found.kind) {
    case 'found':
      return found.invoice;
    case 'none':
      return null;
    case 'key-not-valid':
      deps.authenticator.forget(keyId);
      throw problemOf('unauthenticated');
    default:
      return assertNever(found);
  }
}
