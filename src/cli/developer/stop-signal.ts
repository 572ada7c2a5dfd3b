import { whenParentDies } from '../../runtime/parent-process.ts';

/** Aborted by the first signal, or by the death of the npm that started this process. A second signal ends the process at once. */
export function stopSignal(exitCode: number): AbortSignal {
  const controller = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => {
      if (controller.signal.aborted) process.exit(exitCode);
      controller.abort();
    });
  }
  whenParentDies(() => controller.abort());
  return controller.signal;
}
