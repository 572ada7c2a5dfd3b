import { afterAll, beforeAll } from 'vitest';
import { GO } from '../examples/programs.ts';
import { describeReceiver } from '../examples/receiver-story.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

describeReceiver(GO, () => service);
