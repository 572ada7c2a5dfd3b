import { afterEach, onTestFinished, test, vi } from 'vitest';
import { createTestDatabase } from '../support/postgres.ts';
import { withClient } from '../support/postgres-template.ts';
import { at } from './explain-ledger.ts';
import { startRecording } from './golden-record.ts';
import { newDirectory } from './run-cli.ts';

// See golden.test.ts.

afterEach(() => {
  vi.useRealTimers();
});

const NOBODYS = '01h455vb4pex5vsknk084sn02q';

test('people are invited, changed and removed, and their sessions ended, with the same words', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const env = {
    ...{ DATABASE_URL: database.connectionString, QUITTANCE_DATA_DIR: newDirectory() },
    QUITTANCE_CONSOLE_URL: 'https://console.example.com',
  };
  const { run, both, finishAudited } = startRecording('people', env);
  await both(['user', 'list']);
  await both(['session', 'list']);
  const { projectId } = await run(['project', 'create', '--name', 'Shop', '--network', 'nile', '--json']);
  await both(['user', 'invite', '--role', 'owner', 'ann@shop.example'], { env: { QUITTANCE_CONSOLE_URL: '' } });
  await run(['user', 'invite', '--role', 'owner', 'Ann@Shop.Example']);
  await both(['user', 'invite', '--role', 'viewer', 'ann@shop.example']);
  await run(['user', 'invite', '--role', 'viewer', '--project', projectId, '--name', 'Bert', 'bert', '--json']);
  await run(['user', 'invite', '--role', 'operator', '--project', projectId, '--by', 'cleo', 'dora']);
  for (const wrong of [
    ['--role', 'king', 'ann smith'],
    ['--role', 'owner', '--project', projectId, 'x'],
    ['--role', 'viewer', '--project', 'prj_1', 'x'],
    ['--role', 'viewer', '--project', `prj_${NOBODYS}`, 'x'],
    ['x'],
  ]) {
    await both(['user', 'invite', ...wrong]);
  }
  await both(['user', 'list']);
  await both(['user', 'role', 'dora', '--role', 'viewer']);
  await run(['user', 'role', 'dora', '--role', 'operator', '--all-projects']);
  await run(['user', 'role', 'dora', '--role', 'operator', '--all-projects', '--project', projectId]);
  await both(['user', 'role', 'ann@shop.example', '--role', 'viewer']);
  await run(['user', 'role', 'nobody', '--role', 'viewer']);
  await run(['user', 'reset', 'bert']);
  await run(['user', 'reset', 'bert', '--json']);
  await both(['user', 'reset', `usr_${NOBODYS}`]);
  await withClient(database.owner, (client) =>
    client.query(
      `insert into sessions (id, sha256, person_id, proof, created_at, seen_at, origin, client_network, user_agent)
       select '00000000-0000-7000-8000-000000000001', sha256('x'), id, 'passkey', $1, $1, '203.0.113.7', '203.0.113.7', 'Firefox'
       from people where login = 'bert'`,
      [new Date(at('11:50:00'))],
    ),
  );
  await both(['session', 'list']);
  await both(['session', 'list', '--user', 'dora']);
  await both(['session', 'list', '--user', 'nobody']);
  await both(['session', 'end', 'ses_0000000000e008000000000001']);
  await both(['session', 'end', 'ses_1']);
  await both(['user', 'remove', 'bert']);
  await run(['user', 'remove', 'ann@shop.example', '--json']);
  await both(['user', 'list']);
  await finishAudited();
});
