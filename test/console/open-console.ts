import { onTestFinished } from 'vitest';
import { createLogger } from '../../src/core/runtime/log.ts';
import { createMetrics } from '../../src/core/runtime/metrics.ts';
import { renderExample } from '../../src/faces/checkout/page/page.ts';
import { registerConsole } from '../../src/faces/console/register.ts';
import { addSignInRoutes, createSessions } from '../../src/faces/console/sign-in/sign-in-routes.ts';
import type { SettingView } from '../../src/faces/operator/system/show-system.ts';
import { createServer } from '../../src/faces/web/server.ts';
import { openDesk } from '../people/desk.ts';
import { operationDeps, ownProcess } from './operation-deps.ts';

export const SANDBOX = 's'.repeat(43);

/** Opens a console with its sign-in, as a browser sees it. Requests carry the given cookie; `lines` is its log. */
type Options = { isSandbox?: boolean; isSecure?: boolean; settings?: readonly SettingView[] };

export async function openConsole({ isSandbox = false, isSecure = true, settings }: Options = {}) {
  const desk = await openDesk();
  const lines: string[] = [];
  const log = createLogger({ level: 'trace', destination: { write: (line) => void lines.push(line) } });
  const { now, random } = desk.deps;
  let url = '';
  const consoleUrl = () => (isSecure ? 'https://console.example' : url);
  const people = () => ({ ...desk.deps, consoleUrl: consoleUrl() });
  const app = createServer({ publicUrl: consoleUrl, trustProxy: [], now, random, log, metrics: createMetrics() });
  const deps = { people, consoleUrl, log, ...(isSandbox ? { sandboxToken: SANDBOX } : {}) };
  const { find: findSession, ...sessions } = createSessions(deps);
  addSignInRoutes(app, deps);
  registerConsole(app, {
    ...{
      ...operationDeps({ db: desk.db, now, random }),
      ...{ ...sessions, findSession, people },
      ...ownProcess(now()),
      ...(settings === undefined ? {} : { settings }),
      ...{ randomBelow: () => 0, onChange: () => undefined },
      renderExample,
      publicUrl: consoleUrl,
      consoleUrl,
    },
  });
  url = await app.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(() => app.close());
  const ask = async (path: string, { form, cookie, headers = {} }: Asked = {}) => {
    const response = await fetch(url + path, {
      redirect: 'manual',
      ...(form === undefined ? {} : { method: 'POST', body: new URLSearchParams(form).toString() }),
      headers: {
        ...(form === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded', ...OWN(consoleUrl()) }),
        ...(cookie === undefined ? {} : { cookie }),
        ...headers,
      },
    });
    const set = response.headers.get('set-cookie');
    return {
      ...{ status: response.status, text: await response.text(), location: response.headers.get('location'), set },
      cookie: set?.split(';')[0],
      headers: response.headers,
    };
  };
  return { ...desk, ask, lines, url };
}

export type OpenConsole = Awaited<ReturnType<typeof openConsole>>;

type Asked = { form?: Record<string, string>; cookie?: string | undefined; headers?: Record<string, string> };
const OWN = (origin: string) => ({ 'sec-fetch-site': 'same-origin', origin });
