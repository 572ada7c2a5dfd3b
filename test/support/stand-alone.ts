import type { PostgresConnection } from '../../src/store/embedded/connection.ts';
import { withClient } from './postgres-template.ts';

const JUDGES = {
  invoices: ['invoices_tell_each_change', 'invoices_have_told_their_status', 'invoices_begin_told'],
  transfers: ['transfers_pay_their_invoice'],
  events: ['events_tell_of_their_invoice'],
  chain_cursors: ['chain_cursors_go_forward', 'chain_cursors_join_head_blocks'],
};

/**
 * Lets a test write the rows of a ledger one by one, in transactions of their own: what PAID means is judged no more, until what it returns is
 * called. Nothing else is switched off, so the rows are otherwise as a service writes them.
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
