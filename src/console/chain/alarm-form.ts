import { alarmRow } from '../../domain/alarm-kinds.ts';
import { AppError } from '../../domain/errors.ts';
import { acknowledgeAlarmsOperation } from '../../operator/chain/operations.ts';
import { showStatus } from '../../operator/chain/show-status.ts';
import type { AcknowledgedView, ChainStatusView } from '../../operator/chain/views.ts';
import { clip } from '../../operator/input/clip.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { html } from '../../web/html.ts';
import { byOperation } from '../forms/add-form.ts';
import type { Form } from '../forms/form.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import { outside, time } from '../page/pieces.ts';
import { needProject, urlTo } from '../page/visit.ts';
import { renderKept, renderText } from '../page/words.ts';

type Alarm = ChainStatusView['alarms'][number];
type Subject = { project: ListedProjectView; alarm: Alarm };
type Wanted = ReturnType<typeof acknowledgeAlarmsOperation.read>;

/** No kind has a dot; a subject may have anything. */
export const alarmPath = ({ kind, subject }: Pick<Alarm, 'kind' | 'subject'>) =>
  `/chain/alarms/${kind}.${encodeURIComponent(subject)}`;

/** Closes one alarm that tells of something that happened once. */
export function alarmForm(deps: ConsoleDeps): Form<Subject, Wanted, AcknowledgedView> {
  return {
    ...byOperation(deps, acknowledgeAlarmsOperation, (_filled, { project: { network }, alarm }: Subject) => {
      return { network, alarm: alarm.kind, subject: alarm.subject };
    }),
    path: '/chain/alarms/:alarm',
    find: async ({ visit, request }, asked) => {
      const project = needProject(visit, asked);
      const { alarm: text = '' } = request.params as { alarm?: string };
      const { view } = await showStatus(deps, visit.actor, { network: project.network });
      const alarm = view.alarms.find(
        ({ kind, subject }) => alarmRow(kind).endsBy === 'operator' && `${kind}.${subject}` === text,
      );
      if (alarm !== undefined) return { project, alarm };
      throw new AppError('NOT_FOUND', `${project.network} has no open alarm ${clip(text)} that a person closes`);
    },
    show: (visit, { project, alarm: { kind, subject, detail, raisedAt, seenCount } }) => ({
      title: 'Close an alarm',
      about: project,
      consequence: html`<p><strong>${kind}</strong>${subject === '' ? null : html` ${outside(subject, 200)}`}</p><p>${renderKept(detail, 2000)}</p><p>${renderText(alarmRow(kind).advice)}</p><p class="hint">Since ${time(raisedAt)} UTC, seen ${seenCount} ${seenCount === 1 ? 'time' : 'times'}. It leaves the lists and the metrics; that you closed it stands in the audit log. If it happens again, it is raised again.</p>`,
      fields: [],
      button: 'I have read it: close it',
      back: urlTo(visit, '/chain', project),
    }),
    done: (visit, { project }) => ({ goTo: urlTo(visit, '/chain', project, { done: 'closed' }) }),
  };
}
