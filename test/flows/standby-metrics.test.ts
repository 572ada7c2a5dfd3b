import { onTestFinished, test } from 'vitest';
import { unlistedStatement } from '../../src/core/store/db/statement.ts';
import { untilAlarm, untilHeadIsExamined } from '../support/fault-flow.ts';
import { eventually, startTestService } from '../support/service.ts';

const takeLease = unlistedStatement(
  '',
  {},
  `update leases set holder = gen_random_uuid(), epoch = epoch + 1, expires_at = now() + interval '9 minutes'`,
);

/** Metrics that only the process that follows the network has. */
const OF_THE_LEADER = /^quittance_(chain_|alarms_open|capacity_|balance_difference)/;

test('a process that follows the network no more shows nothing of what it knew, so no alarm seems open that another one closed', async () => {
  const running = await startTestService();
  onTestFinished(() => running.stop());
  const shown = async () => {
    const lines = (await (await fetch(`${running.metricsUrl}/metrics`)).text()).split('\n');
    return lines.filter((line) => OF_THE_LEADER.test(line));
  };
  await untilHeadIsExamined(running);
  for (const { setFault } of running.nodes) setFault({ kind: 'unavailable-503' });
  running.clock.advance(60_000);
  await untilAlarm(running, 'blind');
  await eventually(shown, (lines) => lines.some((line) => /_open\{.*kind="blind".* 1$/.test(line)));
  await running.db.run(takeLease, []);
  await eventually(shown, (lines) => lines.length === 0);
});
