import { randomBytes } from 'node:crypto';
import { Agent, request } from 'undici';
import { createWebhookSecret, signWebhook } from '../../src/core/webhooks/sign.ts';

/** Sends this many webhooks to these URLs in turn, from as many closed loops as `concurrency` says. */
export type PostJob = { urls: string[]; count: number; concurrency: number; body: string };

/** The bare baseline: sign, POST with undici, read the response, repeat. It has all data in advance and records nothing. */
async function run({ urls, count, concurrency, body }: PostJob): Promise<{ perSecond: number }> {
  const agent = new Agent({ connections: concurrency });
  const secret = createWebhookSecret(randomBytes);
  let next = 0;
  const loop = async () => {
    while (next < count) {
      const number = next++;
      const id = `evt_${number}`;
      const timestampSeconds = Math.floor(Date.now() / 1000);
      const bytes = Buffer.from(body);
      const headers = { ...signWebhook({ id, timestampSeconds, body: bytes, secrets: [secret] }) };
      const url = urls[number % urls.length] ?? '';
      const answer = await request(url, { dispatcher: agent, method: 'POST', headers, body: bytes });
      if (answer.statusCode !== 204) throw new Error(`the receiver answered ${answer.statusCode}`);
      await answer.body.dump();
    }
  };
  const started = performance.now();
  await Promise.all(Array.from({ length: concurrency }, loop));
  const seconds = (performance.now() - started) / 1000;
  await agent.destroy();
  return { perSecond: count / seconds };
}

process.on('message', (job: PostJob) => {
  run(job).then(
    (result) => process.send?.(result),
    (error: Error) => process.send?.({ error: error.message }),
  );
});
process.on('disconnect', () => process.exit());
process.send?.({ ready: true });
