import { expect } from 'vitest';
import { createInvoice } from '../support/service.ts';
import { type Attempt, tryGroup, World } from './world.ts';

const world = new World();
const CLOSING = 'trigger invoices.invoices_of_a_closed_ledger';

const changed =
  (text: string, named: string): Attempt =>
  async (as) => {
    await as(text);
    return { named: `schema-changed ${named}` };
  };

const closedByMark: Attempt = async (as) => {
  await as('update ledger_identity set closed_at = now()');
  return { named: `schema-changed ${CLOSING}`, undo: 'update ledger_identity set closed_at = null' };
};

const closedByTrigger: Attempt = async (as) => {
  await as('alter table invoices enable always trigger invoices_of_a_closed_ledger');
  return {
    named: `schema-changed ${CLOSING}`,
    holds: async () => expect((await createInvoice(world.service)).status).toBe(503),
    undo: 'alter table invoices disable trigger invoices_of_a_closed_ledger',
  };
};

tryGroup(
  world,
  'schema',
  { shops: 0 },
  {
    36: closedByMark,
    37: closedByTrigger,
    43: changed('drop trigger transfers_are_kept on transfers', 'trigger transfers.transfers_are_kept'),
    44: changed(
      'create or replace function keep_paid_invoices() returns trigger language plpgsql as $$ begin return new; end $$',
      'function keep_paid_invoices()',
    ),
    45: changed(
      `create function planted() returns trigger language plpgsql as $$ begin return new; end $$;
       create trigger helpful before insert on invoices for each row execute function planted()`,
      'trigger invoices.helpful',
    ),
    46: changed(
      'alter table invoices drop constraint invoices_reservation',
      'constraint invoices.invoices_reservation',
    ),
    47: changed('alter table addresses disable trigger user', 'trigger addresses.addresses_keep_what_they_are'),
  },
);
