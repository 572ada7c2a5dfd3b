import { afterAll, beforeAll } from 'vitest';
import { GO, PROGRAMS } from '../examples/programs.ts';
import { describeReceiver } from '../examples/receiver-story.ts';
import { describeShell } from '../examples/shell-story.ts';
import { startServerOfTomorrow, TOMORROW } from '../support/server-of-tomorrow.ts';
import { startTestService, type TestService } from '../support/service.ts';

const ON_HOLD = 'order-on-hold';

// The other tests of the examples run them against today's server.
let service: TestService;
let tomorrow: Awaited<ReturnType<typeof startServerOfTomorrow>>;
beforeAll(async () => {
  service = await startTestService();
  tomorrow = await startServerOfTomorrow(service.url, ({ externalId }) => externalId === ON_HOLD);
});
afterAll(async () => {
  await tomorrow.stop();
  await service.stop();
});

const ofTomorrow = () => ({ ...service, url: tomorrow.url });
for (const program of [...PROGRAMS, GO]) describeReceiver(program, ofTomorrow, ON_HOLD);
describeShell(ofTomorrow, TOMORROW.code);
