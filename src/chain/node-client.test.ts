import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Devnet, startDevnet } from '../devnet/devnet.ts';
import { createNodeClient, type NodeClient } from './node-client.ts';

let devnet: Devnet;
let node: NodeClient;
const outcomes: string[] = [];
beforeAll(async () => {
  devnet = await startDevnet({ dataDir: null, blockMs: 0 });
  node = createNodeClient({
    url: `${devnet.url}/`,
    apiKey: 'key',
    timeoutMs: 300,
    onOutcome: (outcome) => outcomes.push(outcome),
  });
});
afterAll(async () => {
  await node.close();
  await devnet.stop();
});

test('an answer is parsed JSON', async () => {
  devnet.setFault();
  expect(await node.post('/wallet/getblock', { detail: false })).toHaveProperty('blockID');
  expect(outcomes.at(-1)).toBe('ok');
});

test.each([
  ['error-200', /error: class .*lack of computing resources/],
  ['bare-text', /not JSON: this API is closed/],
  ['html', /HTTP \d+|not JSON/],
  ['suspended-403', /HTTP 403: .*suspended for 30s/],
  ['not-found-404', /HTTP 404/],
  ['too-large-413', /HTTP 413/],
  ['limited-429', /HTTP 429/],
  ['unavailable-503', /HTTP 503/],
  ['truncated', /not JSON|terminated|closed/],
  ['hang', /timeout|aborted/i],
  ['reset', /socket|reset|closed/i],
] as const)('the refusal %s is NODE_REFUSED, worth a retry, and says what was seen', async (kind, message) => {
  devnet.setFault({ kind });
  const refused = node.post('/wallet/getblock', { detail: false });
  await expect(refused).rejects.toMatchObject({ code: 'NODE_REFUSED', retryable: true });
  await expect(refused).rejects.toThrow(message);
  expect(outcomes.at(-1)).toBe('refused');
});

test('a node that is not there is NODE_REFUSED', async () => {
  const nobody = createNodeClient({ url: 'http://127.0.0.1:1', apiKey: null });
  await expect(nobody.post('/wallet/getblock', {})).rejects.toMatchObject({ code: 'NODE_REFUSED' });
  await nobody.close();
});
