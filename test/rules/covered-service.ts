import { Session } from 'node:inspector/promises';
import { fileURLToPath } from 'node:url';

/** The service's answer to any message: the files of `src/` in which a function was called since the previous message. */
export type Called = { paths: string[] };

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
process.on('message', async () => process.send?.({ paths: await takeCalled() } satisfies Called));
const { main } = await import('../../src/cli/main.ts');
process.exitCode = await main(['start']);
// Otherwise the channel would keep the process running.
process.disconnect();

/** Counts restart each time. Code that a module runs while loading doesn't count as a call. */
async function takeCalled(): Promise<string[]> {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const called = result.filter(({ url, functions }) => {
    if (!url.startsWith('file:')) return false;
    return functions.some(({ functionName, ranges }) => {
      const [whole] = ranges;
      const isModule = functionName === '' && whole?.startOffset === 0;
      return !isModule && (whole?.count ?? 0) > 0;
    });
  });
  const paths = called.map(({ url }) => fileURLToPath(url)).filter((path) => path.startsWith(ROOT));
  return [...new Set(paths.map((path) => path.slice(ROOT.length)))].filter((path) => path.startsWith('src/')).sort();
}
