import { encodeId } from '../../domain/ids.ts';
import { formatAmount, microUsdt } from '../../domain/money.ts';
import { isCurrentRate, originOf, readRateSource } from '../../domain/rate.ts';
import { toIso, type UnixMs } from '../../domain/time.ts';
import type { Adapter, StoredRate } from '../../store/outbox/adapter-orders.ts';
import { asNumber } from '../../webhooks/adapter-signature.ts';
import { formatDuration } from '../input/duration.ts';

/** What everybody sees of an adapter who may see it. */
export function viewAdapter(
  { id, projectId, network, adapter: kind, currency, ...rate }: Omit<Adapter, 'disabledAt'>,
  now: UnixMs,
) {
  return {
    ...{ adapterId: encodeId('whe', id), projectId: encodeId('prj', projectId), network, kind, currency },
    ...{
      rate: formatRate(rate.readMicro ?? rate.rateMicro),
      rateMin: formatRate(rate.rateMinMicro),
      rateMax: formatRate(rate.rateMaxMicro),
      rateSource: viewSource(rate, now),
      path: `/adapters/${encodeId('whe', id)}`,
    },
  };
}

/** `7.2` */
export function formatRate(rateMicro: bigint): string {
  return asNumber(formatAmount(microUsdt(rateMicro)));
}

function viewSource({ rateSource, readAt }: StoredRate, now: UnixMs) {
  if (rateSource === null || readAt === null) return null;
  const source = readRateSource(rateSource);
  const { url, path, timePath, min, max, maxAgeMs } = source;
  return {
    ...{ origin: originOf(source), url, path, timePath, min, max, maxAge: formatDuration(maxAgeMs) },
    ...{ at: toIso(readAt), ageSeconds: Math.floor((now - readAt) / 1000) },
    isTooOld: !isCurrentRate(readAt, source, now),
  };
}
