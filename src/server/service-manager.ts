import { spawn } from 'node:child_process';
import { get } from 'node:http';
import type { Socket } from 'node:net';
import { createLogThrottle, type Logger } from '../core/runtime/log.ts';

/**
 * Notifies systemd about this process. Call `ready` once the process works. From then on, the watchdog is notified as long as `GET
 * /healthz` at `healthUrl` succeeds or, without a URL, as long as the event loop runs.
 */
type ServiceManager = { ready(healthUrl: string | null): void; stopping(): void };

const NOBODY: ServiceManager = { ready: () => undefined, stopping: () => undefined };

/** Sends three notifications per watchdog interval, because a late notification or a lost connection must not end the process. */
const PINGS_IN_TIME = 3;
/**
 * A shell sends the notifications, because spawning a program blocks this process: for 1.5 ms at 54 MB of memory, and for 64 ms at 554 MB.
 * The shell starts while this process is still small, and ends with it.
 */
const SPEAKER = 'while read -r state; do systemd-notify "$state" || echo "cannot send $state" >&2; done';

/**
 * Finds the supervisor in the environment: `NOTIFY_SOCKET=/run/systemd/notify`, `WATCHDOG_USEC=60000000` and `WATCHDOG_PID=4711`
 * (sd_notify(3), sd_watchdog_enabled(3)). Removes all three variables from `env`, so that no child process sends notifications in our name.
 * Node.js has no Unix datagram sockets, so the messages are sent by the program `systemd-notify`, which exists wherever systemd does.
 */
export function findServiceManager(env: NodeJS.ProcessEnv, log: Logger): ServiceManager {
  const { NOTIFY_SOCKET: socket, WATCHDOG_USEC, WATCHDOG_PID = String(process.pid) } = env;
  for (const name of ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID']) delete env[name];
  if (!socket) return NOBODY;
  const throttle = createLogThrottle(() => performance.now());
  const warn = (error: Error, message: string) => {
    if (throttle.isDue(message)) log.warn({ err: error }, message);
  };
  const tell = startSpeaker({ PATH: env['PATH'], NOTIFY_SOCKET: socket }, (error) =>
    warn(error, 'cannot notify systemd'),
  );
  const watchdogMs = WATCHDOG_PID === String(process.pid) ? Number(WATCHDOG_USEC ?? 0) / 1000 : 0;
  let watchdog: NodeJS.Timeout | undefined;
  return {
    ready: (healthUrl) => {
      tell('READY=1');
      if (!(watchdogMs > 0)) return;
      const everyMs = watchdogMs / PINGS_IN_TIME;
      watchdog = setInterval(() => {
        answers(healthUrl, everyMs).then(
          () => tell('WATCHDOG=1'),
          (error) =>
            warn(
              error,
              'this process does not respond to its own health check; systemd will stop it if this continues',
            ),
        );
      }, everyMs).unref();
    },
    stopping: () => {
      clearInterval(watchdog);
      tell('STOPPING=1');
    },
  };
}

/** Starts the shell in a way that never blocks this process, not even its exit. */
function startSpeaker(env: NodeJS.ProcessEnv, onError: (error: Error) => void): (state: string) => void {
  const child = spawn('/bin/sh', ['-c', SPEAKER], { env, stdio: ['pipe', 'ignore', 'pipe'] });
  child.unref();
  for (const pipe of [child.stdin, child.stderr] as Socket[]) pipe.unref();
  child.once('error', onError);
  child.stdin.on('error', onError);
  child.stderr.on('data', (text) => onError(new Error(String(text).trim())));
  return (state) => void child.stdin.write(`${state}\n`);
}

/** Uses a new connection, because the server may have failed in such a way that it doesn't accept new ones. */
async function answers(url: string | null, timeoutMs: number): Promise<void> {
  if (url === null) return;
  await new Promise<void>((resolve, reject) => {
    const request = get(`${url}/healthz`, { agent: false, timeout: timeoutMs }, (response) => {
      response.resume();
      if (response.statusCode === 200) resolve();
      else reject(new Error(`GET /healthz returned ${response.statusCode}`));
    });
    request.once('timeout', () => request.destroy(new Error(`GET /healthz did not respond within ${timeoutMs} ms`)));
    request.once('error', reject);
  });
}
