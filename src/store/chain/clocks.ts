import { isNetwork, type Network } from '../../domain/network.ts';
import { answerOf } from '../db/rows-of.ts';

/**
 * What the database's clock shows, and the times of the newest examined and of the newest recorded block of networks that were followed.
 * `isCatchingUp`: the watcher said so last.
 */
export const readClocks = answerOf(
  'clocks-read',
  {
    databaseAt: 'timestamptz',
    network: 'text?',
    headTime: 'timestamptz?',
    solidTime: 'timestamptz?',
    isCatchingUp: 'bool?',
  },
  `select clock_timestamp() as database_at, c.network, coalesce(h.block_time, c.solid_time) as head_time, c.solid_time,
     coalesce(jsonb_typeof(s.status->'catchUp') = 'object', false) as is_catching_up
   from (select) one
   left join chain_cursors c on c.network = any($1::text[])
   left join lateral (select block_time from head_blocks where network = c.network order by number desc limit 1) h on true
   left join chain_status s on s.network = c.network`,
  (networks: readonly Network[]) => [[...networks]],
  (rows) => ({
    databaseAt: rows[0]?.databaseAt ?? null,
    chains: rows.flatMap(({ network, headTime, solidTime, isCatchingUp }) =>
      network === null || !isNetwork(network) || headTime === null || solidTime === null
        ? []
        : [{ network, headTime, solidTime, isCatchingUp: isCatchingUp === true }],
    ),
  }),
);
