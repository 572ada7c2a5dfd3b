import { Agent, request } from 'undici';
import type { DayPlan } from './day.ts';

const PARALLEL = 4;
const RANGE = 10;

/**
 * Returns how many blocks per second the server delivers to a client that ignores the content: ranges of ten blocks, and each block's
 * infos.
 */
export async function measureServerAlone(url: string, day: DayPlan, blocks: number): Promise<number> {
  const agent = new Agent({ connections: PARALLEL });
  const fetch = async (path: string, body: object) => {
    const answer = await request(url + path, { method: 'POST', dispatcher: agent, body: JSON.stringify(body) });
    if (answer.statusCode !== 200) throw new Error(`${path} answered ${answer.statusCode}`);
    await answer.body.arrayBuffer();
  };
  const started = performance.now();
  for (let number = day.firstNumber; number < day.firstNumber + blocks; number += RANGE) {
    const infos = Array.from({ length: RANGE }, (_, index) =>
      fetch('/wallet/gettransactioninfobyblocknum', { num: number + index }),
    );
    await Promise.all([fetch('/wallet/getblockbylimitnext', { startNum: number, endNum: number + RANGE }), ...infos]);
  }
  const seconds = (performance.now() - started) / 1000;
  await agent.destroy();
  return blocks / seconds;
}
