import type { PostgresConnection } from '../../src/core/store/embedded/connection.ts';
import { withClient } from './postgres-template.ts';

const JUDGES = {
  invoices: ['invoices_tell_each_change', 'invoices_have_told_their_status', 'invoices_begin_told'],
  transfers: ['transfers_pay_their_invoice'],
  events: ['events_tell_of_their_invoice'],
  chain_cursors: ['chain_cursors_go_forward', 'chain_cursors_join_head_blocks'],
};

/**
 * Lets a test write a ledger's rows one by one in separate transactions: the rules of PAID aren't enforced until the returned function is
 * called. All other checks stay active, so the rows are otherwise valid.
 */
export async function letRowsStandAlone(
  owner: PostgresConnection | { connectionString: string },
): Promise<() => Promise<void>> {
  const turn = async (what: 'enable' | 'disable') => {
    const statements = Object.entries(JUDGES).flatMap(([table, triggers]) =>
      triggers.map((trigger) => `alter table ${table} ${what} trigger ${trigger}`),
    );
    await withClient(owner as PostgresConnection, (client) => client.query(statements.join(';')));
  };
  await turn('disable');
  return () => turn('enable');
}
