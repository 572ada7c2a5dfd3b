import type { UnixMs } from '../../domain/time.ts';
import { isAllowed } from '../../operator/authorize.ts';
import type { ChannelView } from '../../operator/subjects/notify.ts';
import { type Html, html } from '../../web/html.ts';
import { oneClick } from '../forms/form.ts';
import type { Page } from '../page/layout.ts';
import { alert, duration, outside, table, time } from '../page/pieces.ts';
import type { Visit } from '../page/visit.ts';

export const CHANNELS_PAGE = '/settings/notifications';

export type ChannelKind = ChannelView['kind'];

/** As people call each kind. */
export const KIND_NAMES: Readonly<Record<ChannelKind, string>> = {
  email: 'E-mail',
  telegram: 'Telegram',
  slack: 'Slack',
  discord: 'Discord',
  ntfy: 'ntfy',
  webhook: 'Signed webhook',
};

/** `said`: what was just done. `tested`: the channel that was just sent a test. */
type Shown = { channels: readonly ChannelView[]; tested: string | undefined; said: string | null; now: UnixMs };

/** Who is told what happens, and does it arrive? */
export function channelsPage(visit: Visit, { channels, tested, said, now }: Shown): Page {
  const ofTest = channels.find(({ channelId }) => channelId === tested);
  const kinds = Object.entries(KIND_NAMES).map(
    ([kind, name]) => html`<li><p><a href="${CHANNELS_PAGE}/new/${kind}">${name}</a></p></li>`,
  );
  return {
    title: 'Notifications',
    main: html`${said === null ? null : html`<p class="good" role="status">${said}</p>`}${ofTest === undefined ? null : renderTest(ofTest)}
${channels.length === 0 ? NONE : html`<section class="card flush" aria-label="Channels">${table('Channels, oldest first', columnsFor(visit, now), channels)}</section>`}
${isAllowed(visit.actor, 'addChannel') ? html`<section class="card" aria-labelledby="add"><h2 id="add">Add a channel</h2><ul class="concerns">${kinds}</ul></section>` : null}
<p class="hint">The target of a channel is never shown again: to change it, remove the channel and add a new one. Add at least two, because a failing channel is reported through the others.</p>`,
  };
}

const NONE = html`<section class="card empty"><h2>No channels yet</h2><p>Alarms appear only in this console. A channel reports each alarm within a minute, and again when it clears.</p></section>`;

function renderTest({ failingSince, lastError, name }: ChannelView): Html {
  if (failingSince === null)
    return html`<p class="good" role="status">The test was sent to ${outside(name, 100)}: check that it arrived.</p>`;
  return alert(
    html`<p>The test could not be sent to ${outside(name, 100)}: ${outside(lastError ?? 'unknown reason', 400)}</p>`,
  );
}

function columnsFor(visit: Visit, now: UnixMs) {
  const at = ({ channelId }: ChannelView) => `${CHANNELS_PAGE}/${channelId}`;
  const canTest = isAllowed(visit.actor, 'testChannel');
  const canRemove = isAllowed(visit.actor, 'removeChannel');
  return [
    ['Name', ({ name }: ChannelView) => outside(name, 100)],
    ['Kind', ({ kind }: ChannelView) => KIND_NAMES[kind]],
    ['Target', ({ shown }: ChannelView) => outside(shown, 300)],
    ['Quiet hours', describeTimes],
    ['State', (channel: ChannelView) => describeState(channel, now)],
    [
      'Test',
      (channel: ChannelView) =>
        canTest ? oneClick(visit, `${at(channel)}/test`, html`Test <span class="unseen">${channel.name}</span>`) : '–',
    ],
    [
      'Actions',
      (channel: ChannelView) =>
        canRemove ? html`<a href="${at(channel)}/remove">Remove <span class="unseen">${channel.name}</span></a>` : '–',
    ],
  ] as const;
}

function describeTimes({ quiet, summary, timeZone }: ChannelView): Html | string {
  const parts = [...(quiet === null ? [] : [`quiet ${quiet}`]), ...(summary === null ? [] : [`summary ${summary}`])];
  return parts.length === 0 ? 'nothing' : outside(`${parts.join(', ')} (${timeZone})`, 200);
}

function describeState({ failingSince, lastError, lastSentAt }: ChannelView, now: UnixMs): Html | string {
  const ago = (iso: string) => duration(Math.max(0, now - Date.parse(iso)));
  if (failingSince !== null)
    return html`<strong>fails</strong> for ${ago(failingSince)}: ${outside(lastError ?? '', 400)}`;
  return lastSentAt === null ? 'nothing sent yet' : html`last sent ${time(lastSentAt)} UTC, ${ago(lastSentAt)} ago`;
}
