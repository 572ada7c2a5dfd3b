import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestService, type TestService } from '../support/service.ts';
import { EXAMPLES, isPresent } from './program.ts';
import { PROGRAMS } from './programs.ts';
import { describeReceiver } from './receiver-story.ts';
import { describeShell } from './shell-story.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

for (const program of PROGRAMS) describeReceiver(program, () => service);
describeShell(() => service);

test.skipIf(!isPresent({ probe: ['gofmt', '-h'] }))(
  'the example in Go is formatted Go; npm run test:long runs it',
  async () => {
    const { stdout } = await promisify(execFile)('gofmt', ['-e', '-l', join(EXAMPLES, 'go')]);
    expect(stdout).toBe('');
  },
);
