import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import { commandOf } from '../db/rows-of.ts';
import { sealOf } from '../db/seal.ts';
import { SEALED_WITHDRAWN } from '../db/sealed-tables.ts';

type Withdrawal = { id: string; projectId: string; network: Network; at: UnixMs };

/** Withdraws an invoice, unless it is paid or was already withdrawn. */
export const withdrawInvoice = commandOf(
  'invoice-withdraw',
  `update invoices set withdrawn_at = $3, withdrawn_mac = $4
   where project_id = $1 and id = $2 and withdrawn_at is null and status <> 'PAID'`,
  ({ id, projectId, network, at }: Withdrawal) => [
    ...[projectId, id, new Date(at)],
    sealOf(SEALED_WITHDRAWN, { id, projectId, network, withdrawnAt: at }),
  ],
);
