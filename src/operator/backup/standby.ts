import { answerOf } from '../../store/db/rows-of.ts';

/** Whether a database is a standby, which takes no rows. */
export const isStandby = answerOf(
  'backup-is-standby',
  { isStandby: 'bool' },
  'select pg_is_in_recovery() as is_standby',
  () => [],
  ([row]) => row?.isStandby === true,
);
