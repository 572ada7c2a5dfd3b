import { AppError } from '../../domain/errors.ts';
import { clip } from '../../operator/input/clip.ts';
import { perform } from '../../operator/operation.ts';
import {
  addChannel,
  type ChannelView,
  listChannels,
  removeChannel,
  testChannel,
} from '../../operator/subjects/notify.ts';
import { html } from '../../web/html.ts';
import { addClick } from '../forms/add-click.ts';
import { addForm, byOperation } from '../forms/add-form.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import { copyButton, facts, ltr, outside } from '../page/pieces.ts';
import { readQuery } from '../page/read-fields.ts';
import type { Asked, Routes } from '../page/routes.ts';
import { channelFields } from './channel-fields.ts';
import { CHANNELS_PAGE, type ChannelKind, channelsPage, KIND_NAMES } from './channels-page.ts';

/** By which operators are told what happens. */
export function addChannelRoutes(routes: Routes, deps: ConsoleDeps): void {
  routes.get(CHANNELS_PAGE, 'listChannels', async ({ visit, request }) => {
    const { tested, added, removed } = readQuery(request, ['project', 'tested', 'added', 'removed']);
    const said =
      added === undefined ? (removed === undefined ? null : 'It is removed.') : 'It is added. Send a test by it.';
    const { data: channels } = await listChannels.run(deps, visit.actor, {});
    return channelsPage(visit, { channels, tested, said, now: deps.now() });
  });
  addClick(routes, `${CHANNELS_PAGE}/:channelId/test`, 'testChannel', async ({ visit, request }) => {
    const { channelId = '' } = request.params as { channelId?: string };
    const wanted = testChannel.read({ channelId }, deps.now());
    await perform(testChannel, deps, visit.actor, wanted);
    return `${CHANNELS_PAGE}?tested=${channelId}`;
  });
  addForm(routes, deps, {
    ...byOperation(deps, addChannel, (filled, kind: ChannelKind) => {
      // A form has a token of its own.
      const { to, isOwnNetwork, accessToken, ...lines } = filled;
      const people = to?.split('\n').filter((line) => line.trim() !== '');
      return { kind, isOwnNetwork: isOwnNetwork === 'yes', ...lines, token: accessToken, to: people };
    }),
    path: `${CHANNELS_PAGE}/new/:kind`,
    find: async ({ request }) => {
      const { kind = '' } = request.params as { kind?: string };
      if (!isKind(kind)) throw new AppError('NOT_FOUND', `there is no kind ${clip(kind)} of channels`);
      return kind;
    },
    show: (_visit, kind) => ({
      ...{ title: `New channel: ${KIND_NAMES[kind]}`, about: null, fields: channelFields(kind) },
      ...{ button: 'Add it', back: CHANNELS_PAGE },
      consequence: html`<p>It is told what is open now, and from then on what happens. What leads there is shown once more where you confirm it, and never again: it is encrypted.</p>`,
    }),
    done: (_visit, _kind, { secret }) => {
      if (secret === null) return { goTo: `${CHANNELS_PAGE}?added=1` };
      return {
        title: 'Channel added',
        main: html`<section class="card form"><h2>Keep this secret now</h2><p>It is shown only here. Your receiver knows by it that a message is from Quittance.</p>
<pre><code>${ltr(secret)}</code></pre><p>${copyButton(secret, 'Copy the secret')}</p><p><a href="${CHANNELS_PAGE}">Back to the channels</a></p></section>`,
      };
    },
  });
  addForm(routes, deps, {
    ...byOperation(deps, removeChannel, (_filled, { channelId }: ChannelView) => ({ channelId })),
    path: `${CHANNELS_PAGE}/:channelId/remove`,
    find: (asked) => findChannel(deps, asked),
    show: (_visit, { name, kind, shown }) => ({
      ...{ title: 'Remove a channel', about: null, fields: [], button: 'Remove it for ever', back: CHANNELS_PAGE },
      consequence: html`<p>It is told nothing more, not even what waits for it. What leads there is forgotten.</p>${facts(
        [
          ['Name', outside(name, 100)],
          ['Kind', KIND_NAMES[kind]],
          ['Leads to', outside(shown, 300)],
        ],
      )}`,
    }),
    done: () => ({ goTo: `${CHANNELS_PAGE}?removed=1` }),
  });
}

const isKind = (text: string): text is ChannelKind => Object.hasOwn(KIND_NAMES, text);

async function findChannel(deps: ConsoleDeps, { visit, request }: Asked): Promise<ChannelView> {
  const { channelId = '' } = request.params as { channelId?: string };
  const channel = (await listChannels.run(deps, visit.actor, {})).data.find((each) => each.channelId === channelId);
  if (channel === undefined) throw new AppError('NOT_FOUND', `there is no channel ${clip(channelId)}`);
  return channel;
}
