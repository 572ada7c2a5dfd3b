import { EVENT_TYPES } from '../../domain/event.ts';
import { encodeId } from '../../domain/ids.ts';
import { toIso, type UnixMs, unixMs } from '../../domain/time.ts';
import { systemClock } from '../../runtime/clock.ts';
import type { ReplayFilter } from '../../store/delivery-replay.ts';
import type { WebhookEndpoint } from '../../store/webhook-endpoints.ts';
import { missableTypes } from '../../webhooks/enable-endpoint.ts';
import { countReplay, noneReplayed, type ReplayCount, replayFiltered } from '../../webhooks/replay-deliveries.ts';
import { CliError } from '../cli-error.ts';
import { clip } from '../clip.ts';
import { readOperator } from '../operator.ts';
import { formatFields, type Result, type Terminal } from '../terminal.ts';
import { readPeriod } from '../transfers/options.ts';
import { findEndpoint, readEventTypes } from '../webhook/options.ts';
import { withDatabase } from '../with-database.ts';
import { replayEvents } from './replay-events.ts';
import { disabledNotes, exhaustedText, type ReplayOptions, refuseMany } from './replay-parts.ts';

/** Sends events again: those that are named, or those of one endpoint and time. */
export async function replay(terminal: Terminal, references: string[], options: ReplayOptions): Promise<Result> {
  if (references.length > 0) return replayEvents(terminal, references, options);
  if (options.endpoint === undefined || options.from === undefined) {
    throw new CliError(
      'USAGE',
      'nothing was replayed: name events (evt_…), or give --endpoint and --from (and --to) for all of a time',
    );
  }
  const { from, until } = readPeriod(options);
  const wanted = readStatuses(options.status);
  const types = options.type === undefined ? null : readEventTypes('--type', options.type);
  const operator = readOperator(options.by, terminal.env);
  const reference = options.endpoint;
  return withDatabase(terminal, async ({ db, config }) => {
    const now = () => unixMs(systemClock.now());
    const endpoint = await findEndpoint(db, reference);
    const period = { from: from ?? unixMs(0), until: until ?? now() };
    if (options.status === undefined) refuseForgotten(period.from, now(), config.webhooks.retentionDays);
    const filter = toFilter(endpoint, { ...wanted, ...period, types });
    const counted = await countReplay(db, filter);
    const total = sum(counted);
    const isDry = options.dryRun === true;
    if (!isDry) refuseMany(total, options.yes);
    const done = isDry || total === 0 ? noneReplayed() : await replayFiltered({ db, now, operator }, filter);
    return describe({ endpoint, period, isDry }, isDry ? counted : done);
  });
}

const STATUSES = ['dead', 'failing', 'delivered', 'missing', 'all'] as const;

type Wanted = Pick<ReplayFilter, 'statuses' | 'onlyFailing'>;

/** `failing` are those pending whose last attempt failed; `all` has every pending one. */
function readStatuses(texts: string[] | undefined): Wanted {
  const names = (texts ?? ['dead', 'missing']).map((text) => {
    const status = STATUSES.find((each) => each === text.trim());
    if (status !== undefined) return status;
    throw new CliError('INVALID_ARGUMENT', `--status has ${clip(text)}: choose ${STATUSES.join(', ')}`);
  });
  if (names.includes('all')) return { statuses: ['dead', 'pending', 'delivered', 'missing'], onlyFailing: false };
  const statuses = names.map((name) => (name === 'failing' ? 'pending' : name)) as Wanted['statuses'];
  return { statuses, onlyFailing: names.includes('failing') };
}

/** What a ping tells is over; one that is asked for by its type is sent again all the same. */
function toFilter(
  endpoint: WebhookEndpoint,
  { types, ...rest }: Wanted & { from: UnixMs; until: UnixMs; types: ReplayFilter['types'] | null },
): ReplayFilter {
  return {
    ...rest,
    projectId: endpoint.project_id,
    endpointId: endpoint.id,
    types: types ?? EVENT_TYPES.filter((type) => type !== 'ping'),
    missingTypes: missableTypes(endpoint).filter((type) => types?.includes(type) ?? true),
  };
}

const DAY_MS = 86_400_000;

/** Deliveries that ended long ago are deleted, so that their events look as if they had never been planned. */
function refuseForgotten(from: UnixMs, now: UnixMs, retentionDays: number): void {
  const kept = now - retentionDays * DAY_MS;
  if (from >= kept) return;
  throw new CliError(
    'INVALID_ARGUMENT',
    `--from is more than ${retentionDays} days ago (QUITTANCE_DELIVERY_RETENTION_DAYS), and what was delivered then is not known any more: begin at ${toIso(unixMs(Math.ceil(kept / 1000) * 1000))}, or say --status dead or --status missing if you mean it`,
  );
}

function sum({ was }: ReplayCount): number {
  return Object.values(was).reduce((total, count) => total + count, 0);
}

function describe(
  { endpoint, period, isDry }: { endpoint: WebhookEndpoint; period: { from: UnixMs; until: UnixMs }; isDry: boolean },
  count: ReplayCount,
): Result {
  const endpointId = encodeId('whe', endpoint.id);
  const total = sum(count);
  const { replayed, due, exhausted } = count.outcome;
  const parts = Object.entries(count.was).flatMap(([was, events]) => (events === 0 ? [] : [`${events} ${was}`]));
  const fields = formatFields([
    ['endpoint', endpointId],
    ['from', toIso(period.from)],
    ['to', toIso(period.until)],
    [isDry ? 'would be sent' : 'found', parts.length === 0 ? 'nothing' : `${total}: ${parts.join(', ')}`],
    ['due now', isDry ? null : String(replayed)],
    ['due anyway', due === 0 ? null : `${due}, within seconds`],
    ['not sent', exhausted === 0 ? null : exhaustedText(exhausted)],
  ]);
  const notes = isDry ? [] : disabledNotes([endpoint]);
  return {
    data: {
      endpointId,
      from: toIso(period.from),
      until: toIso(period.until),
      isDryRun: isDry,
      found: { total, ...count.was },
      ...(isDry ? {} : { replayed, due, exhausted }),
    },
    text: fields,
    ...(notes.length === 0 ? {} : { next: notes.join('\n') }),
  };
}
