import { whenParentDies } from '../../runtime/parent-process.ts';
import type { Terminal } from '../terminal.ts';
import { listen } from './listen.ts';
import type { ListenOptions } from './settings.ts';

/** Runs `quittance listen` until a signal or the death of the npm that started it. A second signal ends it at once. */
export async function runListen(terminal: Terminal, options: ListenOptions): Promise<void> {
  const controller = new AbortController();
  const stop = () => {
    if (controller.signal.aborted) process.exit(130);
    controller.abort();
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop);
  whenParentDies(() => controller.abort());
  await listen(terminal, options, {
    signal: controller.signal,
    write: (line) => terminal.stdout.write(`${line}\n`),
    hasColor: terminal.stdout.isTTY === true && terminal.env['NO_COLOR'] === undefined,
  });
}
