import { Type } from '../../runtime/type.ts';
import { Flag, Line, Lines, Period, ProjectId } from '../input/given.ts';
import { operation } from '../operation.ts';
import { listDeliveries, readDeliveryFilter } from './list-deliveries.ts';
import { readReplay, replayPeriod } from './replay-deliveries.ts';
import { readReplayedEvents, replayEvents } from './replay-events.ts';
import { showDelivery } from './show-delivery.ts';
import { DeliveryListView, ReplayedEventsView, ReplayedPeriodView, ShownEventView } from './views.ts';

export const listDeliveriesOperation = operation({
  action: 'listDeliveries',
  summary: 'What became of each event at each endpoint, the newest events first',
  ...{ method: 'GET', path: '/deliveries', output: DeliveryListView },
  input: Type.Object({
    ...{ projectId: ProjectId, endpoint: Line, invoice: Line, event: Line },
    ...{ status: Line, type: Line, ...Period, before: Line, limit: Line },
  }),
  read: ({ projectId, endpoint, invoice, limit = '50', ...given }) => {
    return { ...readDeliveryFilter({ ...given, limit }), projectId, endpoint, invoice };
  },
  run: listDeliveries,
});

export const showDeliveryOperation = operation({
  action: 'showDelivery',
  summary: 'An event: every attempt to deliver it, what is planned, and why the last one failed',
  ...{ method: 'GET', path: '/events/:eventId', output: ShownEventView },
  input: Type.Object({ eventId: Type.String(), endpoint: Line }),
  read: ({ eventId, endpoint }) => ({ eventId, endpoint }),
  run: showDelivery,
});

export const replayPeriodOperation = operation({
  action: 'replayPeriod',
  summary: 'Send the events of one endpoint and time again',
  ...{ method: 'POST', path: '/webhooks/:endpoint/replay', output: ReplayedPeriodView },
  input: Type.Object({
    ...{ endpoint: Type.String(), from: Type.String(), to: Period.to, status: Lines, type: Lines },
    ...{ isDryRun: Flag, isConfirmed: Flag },
  }),
  read: ({ endpoint, isDryRun = false, isConfirmed = false, ...given }) => {
    return { ...readReplay(given), endpoint, isDryRun, isConfirmed };
  },
  run: replayPeriod,
});

export const replayEventsOperation = operation({
  action: 'replayEvents',
  summary: 'Send events again, to one endpoint or to all that they were planned for',
  ...{ method: 'POST', path: '/events/replay', output: ReplayedEventsView },
  input: Type.Object({ events: Type.Array(Type.String()), endpoint: Line, isDryRun: Flag, isConfirmed: Flag }),
  read: ({ events, endpoint, isDryRun = false, isConfirmed = false }) => {
    return { eventIds: readReplayedEvents(events), endpoint, isDryRun, isConfirmed };
  },
  run: replayEvents,
});
