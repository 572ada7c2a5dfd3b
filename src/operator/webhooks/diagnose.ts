import { say, type Text } from '../../domain/message.ts';
import type { DiagnosedAttempt, Diagnosis } from '../../webhooks/diagnosis.ts';
import { quotePage } from '../../webhooks/web-page.ts';
import { diagnoseConnection } from './diagnose-connection.ts';
import { clockDiagnosis, diagnoseVerification, readDiagnosticAnswer } from './diagnose-verification.ts';

/** Why an attempt failed, the most telling first; several things may be wrong at once. Empty if it was delivered. */
export function diagnoseAttempt(attempt: DiagnosedAttempt): Diagnosis[] {
  const { status, error } = attempt;
  if (status === null) return error === null ? [] : [diagnoseConnection(error)];
  // The shop of an adapter has to say the word.
  if (status >= 200 && status < 300) return error === null ? [] : [diagnoseConnection(error)];
  const diagnostic = readDiagnosticAnswer(attempt.answer);
  if (diagnostic !== null) return diagnoseVerification(attempt, diagnostic);
  const clock = clockFromHeader(attempt);
  const byStatus = diagnoseStatus(status);
  // Verification refuses with one of these. With another status the clock is worth knowing, and not what failed.
  return [400, 401, 403].includes(status) ? [...clock, byStatus] : [byStatus, ...clock];
}

/** What is wrong with a delivered webhook: a web page answered in the receiver's place. */
export function diagnosePage(answer: string | null): Diagnosis[] {
  return quotePage(answer) === null ? [] : [diagnoseConnection('web_page')];
}

/** Receivers refuse what is 5 minutes from their own time; the header may be from a server before them, so this is only likely. */
function clockFromHeader({ date, attemptedAt, latencyMs }: DiagnosedAttempt): Diagnosis[] {
  const time = date === null || !/^\w{3}, [ -~]{1,40} GMT$/.test(date) ? Number.NaN : Date.parse(date);
  if (Number.isNaN(time)) return [];
  const diagnosis = clockDiagnosis(time / 1000, { attemptedAt, latencyMs });
  return diagnosis === null ? [] : [{ ...diagnosis, certainty: 'likely' }];
}

function diagnoseStatus(status: number): Diagnosis {
  if (status >= 300 && status < 400) {
    return likely(
      'redirect',
      `the endpoint answered ${status}, a redirect, which webhooks do not follow`,
      'register the URL where the redirect leads: often the one with https://, with or without "www", or with a slash at its end. If it leads to a page for logging in, exempt the route from that',
    );
  }
  const known = STATUSES.find(({ statuses }) => statuses.includes(status));
  if (known !== undefined) return likely(known.code, `the endpoint answered ${status}: ${known.problem}`, known.fix);
  if (status >= 500) {
    return likely(
      'server-error',
      `the endpoint answered ${status}: the application failed on the webhook`,
      'look at the log of the application at the time of the attempt; often it is an error in what it does with the event. It should store the event, answer 200, and work on it afterwards',
    );
  }
  return likely(
    'status',
    `the endpoint answered ${status}, and only 2xx is delivered`,
    'look at the first bytes of the answer and at the log of the application at the time of the attempt',
  );
}

type KnownStatus = { statuses: readonly number[]; code: string; problem: string; fix: Text };

const STATUSES: readonly KnownStatus[] = [
  {
    ...{ statuses: [400, 422], code: 'refused-by-receiver' },
    problem: 'the application refused the webhook, perhaps because it could not verify the signature',
    fix: say`with the verification of @quittance/sdk as middleware, "${{ command: 'webhook test' }}" proves whether the secret, the body or the clock is wrong`,
  },
  {
    ...{ statuses: [401, 403, 407, 419], code: 'unauthorized' },
    problem: 'something in front of the route wants to know who is calling',
    fix: 'webhooks carry a signature and neither cookies nor API keys: exempt the route from login, from protection against CSRF, and from basic authentication and firewall rules of the proxy; the signature proves the sender. An application may also answer so when it cannot verify the signature',
  },
  {
    ...{ statuses: [404], code: 'not-found' },
    problem: 'there is nothing at the path of the URL',
    fix: say`compare the path of the URL with the route of the application, and check that the release with the route is running: "${{ command: 'webhook update' }}" changes the URL`,
  },
  {
    ...{ statuses: [405], code: 'method-not-allowed' },
    problem: 'there is a route at the path of the URL, but not for POST',
    fix: 'let the route take POST, or register the URL of the one that does',
  },
  {
    ...{ statuses: [408, 504], code: 'timeout-behind-proxy' },
    problem: 'a server in front of the application waited too long for it',
    fix: 'let the application store the event, answer 200, and work on it afterwards',
  },
  {
    ...{ statuses: [410], code: 'gone' },
    problem:
      'this says that the endpoint is gone for ever: a delivery that is answered so disables it, a test does not',
    fix: say`answer 410 only to be disabled; when it is back: "${{ command: 'webhook enable' }}"`,
  },
  {
    ...{ statuses: [413], code: 'too-large' },
    problem: 'the application or its proxy takes no body of this size',
    fix: 'allow bodies of at least 20 kB at the route (client_max_body_size of nginx, limit of the body parser)',
  },
  {
    ...{ statuses: [415], code: 'media-type' },
    problem: 'the application does not take application/json here',
    fix: 'let the route take application/json, as raw bytes',
  },
  {
    ...{ statuses: [429], code: 'rate-limited' },
    problem: 'a rate limit of the application or its proxy refused the webhook',
    fix: 'exempt the route from the rate limit: several webhooks may arrive at once, and more after an outage',
  },
  {
    ...{ statuses: [502, 503], code: 'application-down' },
    problem: 'a server in front of the application does not reach it, or the application is starting or overloaded',
    fix: 'check that the application runs and listens where its proxy expects it',
  },
];

function likely(code: string, problem: string, fix: Text): Diagnosis {
  return { code, certainty: 'likely', problem, fix };
}
