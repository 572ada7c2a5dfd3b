import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll } from 'vitest';
import { EXAMPLES, type Program } from '../examples/program.ts';
import { describeReceiver } from '../examples/receiver-story.ts';
import { startTestService, type TestService } from '../support/service.ts';

// Not part of `npm test`, because compiling Go's net/http for the first time takes half a minute of processor time.
const GO: Program = {
  language: 'Go',
  probe: ['go', 'version'],
  prepare: async (folder) => {
    const binary = join(folder, 'receiver');
    await promisify(execFile)('go', ['build', '-o', binary, join(EXAMPLES, 'go/receiver.go')], {
      cwd: folder,
      env: {
        PATH: process.env['PATH'],
        // Reuses the machine's build cache if it's configured. Otherwise nothing is left behind.
        GOCACHE: process.env['GOCACHE'] ?? join(folder, 'cache'),
        HOME: folder,
        GOPATH: join(folder, 'go'),
        CGO_ENABLED: '0',
        GOPROXY: 'off',
        GOTOOLCHAIN: 'local',
      },
    });
    return { command: [binary] };
  },
};

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

describeReceiver(GO, () => service);
