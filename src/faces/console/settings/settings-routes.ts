import { notFound } from '../../../core/domain/errors.ts';
import type { UnixMs } from '../../../core/domain/time.ts';
import type { ActionName } from '../../operator/actions.ts';
import { isAllowed } from '../../operator/authorize.ts';
import { clip } from '../../operator/input/problems.ts';
import { listAdminKeysOperation } from '../../operator/subjects/admin-keys.ts';
import { listAudit } from '../../operator/subjects/audit.ts';
import { listKeys } from '../../operator/subjects/keys.ts';
import {
  addChannel,
  CHANNEL_FIELDS,
  type ChannelView,
  listChannels,
  removeChannel,
  testChannel,
} from '../../operator/subjects/notify.ts';
import { listPeople } from '../../operator/subjects/people.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { listSessions } from '../../operator/subjects/sessions.ts';
import { type Html, html } from '../../web/html.ts';
import { addClick, addForm, byOperation, check, type FormField, line, lines, oneClick } from '../forms/form.ts';
import {
  alert,
  type Column,
  copyButton,
  duration,
  facts,
  ltr,
  many,
  number,
  outside,
  table,
  time,
} from '../page/pieces.ts';
import { type ConsoleDeps, performFor, type Routes } from '../page/routes.ts';
import { chooseProject, entryOf, pathPart, urlTo, usedOf, type Visit } from '../page/visit.ts';
import { addKeyRoutes } from './key-routes.ts';
import { addProjectRoutes } from './project.ts';

/** Adds the overview of settings, and the pages for projects, keys and channels. */
export function addSettingsRoutes(routes: Routes, deps: ConsoleDeps): void {
  // Shows the settings with their states. Omits settings that the visitor's role doesn't allow.
  routes.get('/settings', 'showProject', ['project'], async ({ visit, query }) => {
    const { actor } = visit;
    const project = chooseProject(visit, query.project);
    const render = async (id: string, title: string, entries: readonly Entry[]) => {
      const items: Html[] = [];
      for (const { url, state, ...entry } of entries.filter(({ action }) => isAllowed(actor, action))) {
        items.push(
          html`<li><div><p><a href="${url}">${entry.title}</a></p><p class="hint">${entry.about}</p></div><p>${await state()}</p></li>`,
        );
      }
      if (items.length === 0) return null;
      return html`<section class="card" aria-labelledby="${id}"><h2 id="${id}">${title}</h2><ul class="concerns">${items}</ul></section>`;
    };
    const own: Entry = {
      ...{ title: 'You', url: '/settings/me', action: 'listOwnSessions' },
      ...{ about: 'Your sign-in methods and active sessions.', state: async () => actor.role },
    };
    return {
      title: 'Settings',
      about: project,
      main: html`${project === null ? null : await render('project', 'This project', ofProject(deps, visit, project))}
${await render('all', 'All projects', ofAll(deps, visit))}
${await render('own', 'Your account', [own])}`,
    };
  });
  addProjectRoutes(routes, deps);
  addKeyRoutes(routes, deps);
  addChannelRoutes(routes, deps);
}

type Entry = { title: string; url: string; action: ActionName; about: string; state(): Promise<Html | string> };

function ofProject(deps: ConsoleDeps, visit: Visit, project: ListedProjectView): Entry[] {
  const { projectId, policy } = project;
  return [
    {
      ...{ title: 'Project', url: urlTo(visit, '/settings/project', project), action: 'showProject' },
      about: 'Shop name and look of payment pages, payment matching, and invoice lifetime.',
      state: async () => `policy ${policy}`,
    },
    {
      ...{ title: 'API keys', url: urlTo(visit, '/settings/keys', project), action: 'listKeys' },
      about: 'Your shop creates and reads invoices with these keys.',
      state: async () => active((await performFor(deps, visit, listKeys, { projectId })).data),
    },
  ];
}

function ofAll(deps: ConsoleDeps, visit: Visit): Entry[] {
  const { projects } = visit;
  const used = usedOf(projects).length;
  const archived: Entry = {
    ...{ title: 'Archived projects', url: '/settings/projects', action: 'listProjects' },
    about: 'Projects that accept no new invoices, but can be restored.',
    state: async () => number(projects.length - used),
  };
  return [
    {
      ...{ title: 'New project', url: '/settings/projects/new', action: 'createProject' },
      about: 'Another shop, or another network, with its own addresses, keys and invoices.',
      state: async () => many(used, 'project'),
    },
    ...(used === projects.length ? [] : [archived]),
    {
      ...{ title: 'Admin keys', url: '/settings/admin-keys', action: 'listAdminKeys' },
      about: 'Programs and commands use these keys for the tasks that you do here.',
      state: async () => active((await performFor(deps, visit, listAdminKeysOperation, {})).data),
    },
    {
      ...{ title: 'Notifications', url: CHANNELS_PAGE, action: 'listChannels' },
      about: 'Alarms by e-mail or chat.',
      state: async () => {
        const { data } = await performFor(deps, visit, listChannels, {});
        const failing = data.filter(({ failingSince }) => failingSince !== null).length;
        return `${many(data.length, 'channel')}${failing === 0 ? '' : `, ${number(failing)} failing`}`;
      },
    },
    {
      ...{ title: 'People', url: '/settings/people', action: 'listPeople' },
      about: 'Users and their roles.',
      state: async () => `${number((await performFor(deps, visit, listPeople, {})).data.length)} known`,
    },
    {
      ...{ title: 'Sessions', url: '/settings/sessions', action: 'listSessions' },
      about: 'Users who are signed in, with their browser and IP address.',
      state: async () => `${number((await performFor(deps, visit, listSessions, {})).data.length)} signed in`,
    },
    {
      ...{ title: 'Audit log', url: '/settings/audit', action: 'listAudit' },
      about: 'Every action, with its user and time.',
      state: async () => {
        const [newest] = (await performFor(deps, visit, listAudit, { limit: '1' })).data;
        if (newest === undefined) return 'empty';
        return html`newest: ${newest.action}, ${duration(deps.now() - Date.parse(newest.at))} ago`;
      },
    },
    {
      ...{ title: 'System', url: '/settings/system', action: 'showSystem' },
      about: "Backups, versions, and the service's environment.",
      state: async () => 'read only',
    },
  ];
}

function active(keys: readonly { status: string }[]): string {
  return `${number(keys.filter(({ status }) => status === 'active').length)} active`;
}

/** Adds the pages for the channels that notify operators. */
function addChannelRoutes(routes: Routes, deps: ConsoleDeps): void {
  routes.get(CHANNELS_PAGE, 'listChannels', ['project', 'tested', 'added', 'removed'], async ({ visit, query }) => {
    const { tested, added, removed } = query;
    const removal = removed === undefined ? null : 'The channel was removed.';
    const { data: channels } = await performFor(deps, visit, listChannels, {});
    const ofTest = channels.find(({ channelId }) => channelId === tested);
    const kinds = Object.entries(KIND_NAMES).map(
      ([kind, name]) => html`<li><p><a href="${CHANNELS_PAGE}/new/${kind}">${name}</a></p></li>`,
    );
    return {
      title: 'Notifications',
      said: added === undefined ? removal : 'The channel was added. Send a test message.',
      main: html`${ofTest === undefined ? null : renderTest(ofTest)}
${channels.length === 0 ? NONE : html`<section class="card flush" aria-label="Channels">${table('Channels, oldest first', columnsFor(visit, deps.now()), channels)}</section>`}
${isAllowed(visit.actor, 'addChannel') ? html`<section class="card" aria-labelledby="add"><h2 id="add">Add a channel</h2><ul class="concerns">${kinds}</ul></section>` : null}
<p class="hint">A channel's target is never shown again: to change it, remove the channel and add a new one. Add at least two channels, because Quittance reports a failing channel through the others.</p>`,
    };
  });
  addClick(routes, `${CHANNELS_PAGE}/:channelId/test`, 'testChannel', async ({ visit, request }) => {
    const channelId = pathPart(request, 'channelId');
    await performFor(deps, visit, testChannel, { channelId });
    return `${CHANNELS_PAGE}?tested=${channelId}`;
  });
  addForm(routes, deps, {
    ...byOperation(deps, addChannel, (filled, kind: ChannelKind) => {
      // A form has its own field called `token`.
      const { to, isOwnNetwork, accessToken, ...lines } = filled;
      const people = to?.split('\n').filter((line) => line.trim() !== '');
      return { kind, isOwnNetwork: isOwnNetwork === 'yes', ...lines, token: accessToken, to: people };
    }),
    path: `${CHANNELS_PAGE}/new/:kind`,
    find: async ({ request }) => {
      const kind = pathPart(request, 'kind');
      if (!isKind(kind)) throw notFound`there is no channel kind ${clip(kind)}`;
      return kind;
    },
    show: (_visit, kind) => ({
      ...{ title: `New channel: ${KIND_NAMES[kind]}`, fields: channelFields(kind) },
      ...{ button: 'Add', back: CHANNELS_PAGE },
      consequence: html`<p>The channel receives all open alarms now, and every new alarm. Its target is encrypted: Quittance shows it once more when you confirm, and never again.</p>`,
    }),
    done: (_visit, _kind, { secret }) => {
      if (secret === null) return { goTo: `${CHANNELS_PAGE}?added=1` };
      return {
        title: 'Channel added',
        main: html`<section class="card form"><h2>Copy this secret now</h2><p>Quittance will not show it again. Your receiver needs it to verify that a message is from Quittance.</p>
<pre><code>${ltr(secret)}</code></pre><p>${copyButton(secret, 'Copy the secret')}</p><p><a href="${CHANNELS_PAGE}">Back to the channels</a></p></section>`,
      };
    },
  });
  addForm(routes, deps, {
    ...byOperation(deps, removeChannel, (_filled, { channelId }: ChannelView) => ({ channelId })),
    path: `${CHANNELS_PAGE}/:channelId/remove`,
    find: async ({ visit, request }) => {
      const channelId = pathPart(request, 'channelId');
      const { data } = await performFor(deps, visit, listChannels, {});
      return entryOf(data, (each) => each.channelId === channelId, `there is no channel ${clip(channelId)}`);
    },
    show: (_visit, { name, kind, shown }) => ({
      ...{ title: 'Remove a channel', button: 'Remove permanently', back: CHANNELS_PAGE },
      consequence: html`<p>The channel receives no further messages, not even messages that are waiting. Quittance erases its target.</p>${facts(
        [
          ['Name', outside(name, 100)],
          ['Kind', KIND_NAMES[kind]],
          ['Target', outside(shown, 300)],
        ],
      )}`,
    }),
    done: () => ({ goTo: `${CHANNELS_PAGE}?removed=1` }),
  });
}

const isKind = (text: string): text is ChannelKind => Object.hasOwn(KIND_NAMES, text);

/** The hint for a URL depends on the kind. */
const URL_HINTS: Readonly<Record<ChannelKind, string>> = {
  email:
    'smtps://user:password@host:465, or smtp://…:587. Write %, @ and : in a user name or password as %25, %40 and %3A.',
  telegram: 'Enter a URL only if you run your own Telegram Bot API server.',
  slack: 'Copy the URL from Slack: https://hooks.slack.com/services/…',
  discord: 'Copy the URL from Discord: https://discord.com/api/webhooks/…',
  ntfy: 'Server address and topic: https://ntfy.sh/topic',
  webhook: 'https://ops.example.com/quittance',
};

const WIDE = html` dir="ltr" maxlength="2048" autocapitalize="off" spellcheck="false"`;
const wide = (name: string, label: string, hint?: string) =>
  line(name, label, { more: WIDE, ...(hint === undefined ? {} : { hint }) });
const TARGET: Readonly<Record<(typeof CHANNEL_FIELDS)[ChannelKind]['needs'][number], FormField>> = {
  url: wide('url', 'URL'),
  from: wide('from', 'From', 'Sender address.'),
  to: lines('to', 'To', { more: html` dir="ltr"`, hint: 'E-mail addresses, one per line; at most 20.' }),
  token: wide('accessToken', 'Token'),
  chat: wide('chat', 'Chat', 'Chat id, such as -1001234567890, or @channelname.'),
  secret: wide('secret', 'Secret', 'Leave empty to generate a secret, which is shown once.'),
};

const TIMES = [
  line('quiet', 'Quiet hours (optional)', {
    more: html` placeholder="22:00-07:00"`,
    hint: 'During these hours, Quittance sends only urgent messages.',
  }),
  line('summary', 'Daily summary (optional)', {
    more: html` placeholder="08:00"`,
    hint: 'The open alarms, and the payments from the last 24 hours.',
  }),
  line('timeZone', 'Time zone for these times (optional)', { hint: 'For example, Europe/Berlin. Default: UTC.' }),
];

/** Returns the fields for a kind of channel. */
function channelFields(kind: ChannelKind): FormField[] {
  const { needs, takes } = CHANNEL_FIELDS[kind];
  const target = [...needs, ...takes].map((name): FormField => {
    const field = TARGET[name];
    return {
      ...field,
      label: needs.includes(name) ? field.label : `${field.label} (optional)`,
      ...(name === 'url' ? { hint: URL_HINTS[kind] } : {}),
    };
  });
  return [
    line('name', 'Name (optional)', { hint: 'Default: the kind of channel.' }),
    ...target,
    check('isOwnNetwork', 'The server is in my own network', {
      hint: 'Allows private addresses, http://, and servers without TLS or with a self-signed certificate.',
    }),
    ...TIMES,
  ];
}

const CHANNELS_PAGE = '/settings/notifications';

type ChannelKind = ChannelView['kind'];

/** The usual name for each kind of channel. */
const KIND_NAMES: Readonly<Record<ChannelKind, string>> = {
  email: 'E-mail',
  telegram: 'Telegram',
  slack: 'Slack',
  discord: 'Discord',
  ntfy: 'ntfy',
  webhook: 'Signed webhook',
};

const NONE = html`<section class="card empty"><h2>No channels yet</h2><p>Alarms appear only in this console. A channel reports each alarm within a minute, and reports again when the alarm clears.</p></section>`;

function renderTest({ failingSince, lastError, name }: ChannelView): Html {
  if (failingSince === null)
    return html`<p class="good" role="status">The test was sent to ${outside(name, 100)}: check that it arrived.</p>`;
  return alert(
    html`<p>The test could not be sent to ${outside(name, 100)}: ${outside(lastError ?? 'unknown reason', 400)}</p>`,
  );
}

function columnsFor(visit: Visit, now: UnixMs): Column<ChannelView>[] {
  const at = ({ channelId }: ChannelView) => `${CHANNELS_PAGE}/${channelId}`;
  const canTest = isAllowed(visit.actor, 'testChannel');
  const canRemove = isAllowed(visit.actor, 'removeChannel');
  return [
    ['Name', ({ name }) => outside(name, 100)],
    ['Kind', ({ kind }) => KIND_NAMES[kind]],
    ['Target', ({ shown }) => outside(shown, 300)],
    ['Quiet hours', describeTimes],
    ['State', (channel) => describeState(channel, now)],
    [
      'Test',
      (channel) =>
        canTest ? oneClick(visit, `${at(channel)}/test`, html`Test <span class="unseen">${channel.name}</span>`) : '–',
    ],
    [
      'Actions',
      (channel) =>
        canRemove ? html`<a href="${at(channel)}/remove">Remove <span class="unseen">${channel.name}</span></a>` : '–',
    ],
  ];
}

function describeTimes({ quiet, summary, timeZone }: ChannelView): Html | string {
  const parts = [...(quiet === null ? [] : [`quiet ${quiet}`]), ...(summary === null ? [] : [`summary ${summary}`])];
  return parts.length === 0 ? 'nothing' : outside(`${parts.join(', ')} (${timeZone})`, 200);
}

function describeState({ failingSince, lastError, lastSentAt }: ChannelView, now: UnixMs): Html | string {
  const ago = (iso: string) => duration(Math.max(0, now - Date.parse(iso)));
  if (failingSince !== null)
    return html`<strong>failing</strong> for ${ago(failingSince)}: ${outside(lastError ?? '', 400)}`;
  return lastSentAt === null ? 'nothing sent yet' : html`last sent ${time(lastSentAt)} UTC, ${ago(lastSentAt)} ago`;
}
