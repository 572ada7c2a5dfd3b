import { spawn } from 'node:child_process';
import { get } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from './log.ts';
import { createLogThrottle } from './log-throttle.ts';

/** What systemd is told of this process. */
export type ServiceManager = {
  /** It works. From now on the watchdog hears of it while `healthUrl` answers `GET /healthz`; without one, while the event loop turns. */
  ready(healthUrl: string | null): void;
  stopping(): void;
};

const NOBODY: ServiceManager = { ready: () => undefined, stopping: () => undefined };

/** Three chances to be in time: one that comes late, or one connection that is lost, is no reason to end the process. */
const PINGS_IN_TIME = 3;
/**
 * A shell, because to start a program from this process stops it: for 1.5 ms with 54 MB of memory, for 64 ms with 554 MB. It is started
 * while this process is small, and ends with it.
 */
const SPEAKER = 'while read -r state; do systemd-notify "$state" || echo "cannot say $state" >&2; done';

/**
 * Who supervises this process, from its environment: `NOTIFY_SOCKET=/run/systemd/notify`, `WATCHDOG_USEC=60000000` and `WATCHDOG_PID=4711`
 * (sd_notify(3), sd_watchdog_enabled(3)). Takes the three out of `env`, so that no child speaks in our name. Node has no datagram sockets
 * of Unix: the program `systemd-notify` speaks, which is there where systemd is.
 */
export function findServiceManager(env: NodeJS.ProcessEnv, log: Logger): ServiceManager {
  const { NOTIFY_SOCKET: socket, WATCHDOG_USEC, WATCHDOG_PID = String(process.pid) } = env;
  for (const name of ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID']) delete env[name];
  if (!socket) return NOBODY;
  const seldom = createLogThrottle(() => performance.now());
  const warn = (error: Error, message: string) => {
    if (seldom.isDue(message)) log.warn({ err: error }, message);
  };
  const tell = startSpeaker({ PATH: env['PATH'], NOTIFY_SOCKET: socket }, (error) =>
    warn(error, 'cannot tell systemd'),
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
          (error) => warn(error, 'this process does not answer itself, and systemd ends it if that goes on'),
        );
      }, everyMs).unref();
    },
    stopping: () => {
      clearInterval(watchdog);
      tell('STOPPING=1');
    },
  };
}

/** Keeps this process from nothing, not from its end either. */
function startSpeaker(env: NodeJS.ProcessEnv, onError: (error: Error) => void): (state: string) => void {
  const child = spawn('/bin/sh', ['-c', SPEAKER], { env, stdio: ['pipe', 'ignore', 'pipe'] });
  child.unref();
  for (const pipe of [child.stdin, child.stderr] as Socket[]) pipe.unref();
  child.once('error', onError);
  child.stdin.on('error', onError);
  child.stderr.on('data', (text) => onError(new Error(String(text).trim())));
  return (state) => void child.stdin.write(`${state}\n`);
}

/** Over a connection of its own, because it could be new ones that nobody takes. */
async function answers(url: string | null, timeoutMs: number): Promise<void> {
  if (url === null) return;
  await new Promise<void>((resolve, reject) => {
    const request = get(`${url}/healthz`, { agent: false, timeout: timeoutMs }, (response) => {
      response.resume();
      if (response.statusCode === 200) resolve();
      else reject(new Error(`GET /healthz answers ${response.statusCode}`));
    });
    request.once('timeout', () => request.destroy(new Error(`GET /healthz did not answer within ${timeoutMs} ms`)));
    request.once('error', reject);
  });
}
