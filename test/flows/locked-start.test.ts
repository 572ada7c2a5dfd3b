import pg from 'pg';
import { expect, test } from 'vitest';
import { createInvoice, eventually, startTestService } from '../support/service.ts';

// The tables that a start reads: the ledger's identity, the signing secrets, and the keys.
test.concurrent.each(['ledger_identity', 'webhook_secrets', 'api_keys'])(
  'a start that waits longer for %s than a statement may waits again, and is ready when the lock is gone',
  async (table) => {
    const service = await startTestService();
    const operator = new pg.Client(service.ownerString);
    await operator.connect();
    try {
      await service.stopService();
      await operator.query(`begin; lock table ${table} in access exclusive mode`);
      const waitingSince = async () => {
        const { rows } = await operator.query(
          'select waitstart from pg_locks where not granted and relation = $1::regclass and waitstart is not null',
          [table],
        );
        return rows.map((row) => row.waitstart.getTime()).join();
      };
      const started = service.restart();
      started.catch(() => undefined);
      const first = await eventually(waitingSince, (waiting) => waiting !== '');
      await eventually(waitingSince, (waiting) => waiting !== '' && waiting !== first);
      await operator.query('rollback');
      await started;
      expect((await createInvoice(service)).status).toBe(201);
    } finally {
      await operator.end();
      await service.stop();
    }
  },
);
