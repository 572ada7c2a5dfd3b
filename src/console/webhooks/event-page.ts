import { isAllowed } from '../../operator/authorize.ts';
import type { AttemptView, ShownDeliveryView, ShownEventView } from '../../operator/subjects/deliveries.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import type { TestedEndpointView } from '../../operator/subjects/webhook-sending.ts';
import { type Html, html } from '../../web/html.ts';
import { oneClick } from '../forms/form.ts';
import type { Page } from '../page/layout.ts';
import { facts, live, ltr, number, outside, table, time } from '../page/pieces.ts';
import type { Visit } from '../page/visit.ts';
import { renderText } from '../page/words.ts';
import { deliveryBadge } from './webhooks-page.ts';

type Shown = { event: ShownEventView; said: Html | null };

/** An event, and every attempt to tell of it. */
export function eventPage(visit: Visit, project: ListedProjectView, { event, said }: Shown): Page {
  const { eventId, type, createdAt, deliveries } = event;
  const [first] = deliveries;
  const again = isAllowed(visit.actor, 'replayEvents')
    ? oneClick(visit, `/events/${eventId}/replay`, 'Send again')
    : null;
  return {
    title: type,
    about: project,
    ...(again === null ? {} : { beside: again }),
    main: html`${said === null ? null : html`<p class="good" role="status">${said}</p>`}
<section class="card" aria-labelledby="facts"><h2 id="facts">Facts</h2>${facts([
      ['Happened', html`${time(createdAt)} UTC`],
      ['Event', ltr(eventId)],
      [
        'Order',
        first?.invoiceId == null
          ? null
          : html`<a href="/invoices/${first.invoiceId}">${outside(first.externalId ?? first.invoiceId)}</a>`,
      ],
    ])}</section>
${live('deliveries', html`${deliveries.length === 0 ? html`<section class="card empty"><p>It was planned for no endpoint.</p></section>` : deliveries.map((each) => renderDelivery(eventId, each))}`)}`,
  };
}

function renderDelivery(eventId: string, delivery: ShownDeliveryView): Html {
  const { endpointId, url, attempts, nextAttemptAt, attemptsLeft, diagnosis, isEndpointDisabled } = delivery;
  const next =
    nextAttemptAt === null
      ? null
      : isEndpointDisabled
        ? html`<p class="notice">It waits until the endpoint is enabled.</p>`
        : html`<p>The next attempt comes at ${time(nextAttemptAt)} UTC; ${number(attemptsLeft)} are left.</p>`;
  return html`<section class="card" aria-labelledby="to-${endpointId}"><h2 id="to-${endpointId}"><a href="/webhooks/${endpointId}">${outside(url, 70)}</a> ${deliveryBadge(delivery)}</h2>
${renderDiagnosis(diagnosis)}${next}
${attempts.length === 0 ? html`<p>No attempt yet.</p>` : table(`Attempts at ${endpointId}, the oldest first`, ATTEMPTS, attempts)}
${attempts.length === 0 ? null : html`<details><summary>What each request was</summary>${attempts.map((attempt) => renderHeaders(eventId, url, attempt))}</details>`}</section>`;
}

/** The headers as they were sent. A signature is kept nowhere: with the body it is as good as the request. */
function renderHeaders(eventId: string, url: string, { attempt, attemptedAt }: AttemptView): Html {
  return html`<h3>Attempt ${attempt}</h3><pre><code>POST ${url}
content-type: application/json
webhook-id: ${eventId}
webhook-timestamp: ${Math.floor(Date.parse(attemptedAt) / 1000)}
webhook-signature: v1,… (one for each secret that signed; not kept)
webhook-protocol: v2</code></pre>`;
}

function renderDiagnosis(diagnosis: TestedEndpointView['diagnosis']): Html | null {
  if (diagnosis.length === 0) return null;
  const items = diagnosis.map(
    ({ certainty, problem, fix }) =>
      html`<li><p><strong>${problem}</strong> <small class="hint">${certainty}</small><br>${renderText(fix)}</p></li>`,
  );
  return html`<ol class="causes">${items}</ol>`;
}

const ATTEMPTS = [
  ['Attempt', ({ attempt }: AttemptView) => String(attempt)],
  ['At', ({ attemptedAt }: AttemptView) => time(attemptedAt)],
  ['Took', ({ latencyMs }: AttemptView) => (latencyMs === null ? '–' : `${number(latencyMs)} ms`), 'number'],
  ['Answer', answerOf],
  ['It said', ({ answer }: AttemptView) => (answer === null || answer === '' ? '–' : outside(answer, 500))],
] as const;

function answerOf({ status, error, webPage }: AttemptView): Html | string {
  if (error !== null) return outside(error, 100);
  return webPage === null
    ? String(status)
    : html`${status} <span class="badge" data-state="CONFIRMING">web page</span>`;
}

/** What came of a test, at once. */
export function testedPage(project: ListedProjectView, url: string, tested: TestedEndpointView): Page {
  const { endpointId, eventId, isDelivered, status, error, latencyMs, dns, tls, answer, diagnosis } = tested;
  return {
    title: isDelivered ? 'The test arrived' : 'The test failed',
    about: project,
    main: html`<section class="card${isDelivered ? ' well' : ''}" aria-label="Result">${isDelivered ? html`<p>The receiver answered ${status} within ${latencyMs} ms.</p>` : renderDiagnosis(diagnosis)}
${facts([
  ['URL', ltr(url)],
  ['Event', html`<a href="/events/${eventId}">${ltr(eventId)}</a>`],
  ['Name found', dns],
  ['TLS', tls],
  ['Answer', error === null ? String(status) : outside(error, 300)],
  ['Took', latencyMs === null ? null : `${number(latencyMs)} ms`],
  ['It said', answer === null || answer === '' ? null : outside(answer, 500)],
])}<p><a href="/webhooks/${endpointId}">Back to the endpoint</a></p></section>`,
  };
}
