import { setTimeout as delay } from 'node:timers/promises';
import { encodeId } from '../../src/core/domain/ids.ts';
import type { BenchContext, BenchResult } from '../bench-context.ts';
import { ask, type Child, startScript } from '../child.ts';
import { onServer } from '../databases.ts';
import type { ServiceMemory } from '../ingest/fast-service.ts';
import type { FloodJob, FloodResult } from '../overload/flood.ts';
import { startWorld, type World } from '../overload/world.ts';
import { residentBytes } from '../proc.ts';
import { writeEvents } from '../webhooks/events.ts';
import { judgeSoak, type Sample, showSoak } from './report.ts';

/** The links to read are drawn again every minute. */
const SEGMENT_SECONDS = 60;
const SAMPLE_MS = 10_000;
/** More than the service admits. One request in 20 is an order, so that the disk can hold the data of twenty minutes. */
const [CONNECTIONS, CREATE_EVERY] = [500, 20];
/** Additional webhooks per second besides those of payments, written this many times per second. */
const [EVENTS, EVENTS_EVERY_MS] = [24, 500];
/** Streams that are opened and closed all the time. */
const [STREAMS, STREAM_MS] = [50, 2000];
const MAX_PATHS = 2000;

/**
 * Floods one process with all roles with orders, reads, payers' pages and invalid requests, while payments arrive, webhooks are sent, and
 * streams are opened and closed. Reads the memory after a forced collection.
 */
export async function runSoak(context: BenchContext & { minutes: number }): Promise<BenchResult> {
  const seconds = context.minutes * 60;
  const [flooder] = await startScript('./overload/flood.ts', {});
  context.onStart(flooder);
  context.onProgress('starting');
  const world = await startWorld(context, { name: 'soak', processes: ['api,watcher,webhooks'] }, seconds);
  const [service] = world.services;
  if (service === undefined) throw new Error('the service is missing');
  const stopping = new AbortController();
  const startedMs = Date.now();
  const { signal } = stopping;
  const sampling = keepSampling(context, service, startedMs, signal);
  const side = Promise.all([sampling, keepWriting(world, signal), ...keepStreaming(world, signal)]);
  // A failure there ends the run, and is thrown when it's awaited.
  side.catch(() => stopping.abort());
  try {
    const floods: FloodResult[] = [];
    while (!signal.aborted && Date.now() - startedMs < seconds * 1000) floods.push(await floodOnce(world, flooder));
    stopping.abort();
    const [samples] = await side;
    const targets = judgeSoak(samples);
    return { markdown: showSoak(samples, floods), targets, record: { samples, floods } };
  } finally {
    stopping.abort();
    await side.catch(() => undefined);
    await world.stop();
  }
}

async function floodOnce({ shop, url }: World, flooder: Child): Promise<FloodResult> {
  const rows = await onServer(shop.connection, async (client) => {
    // Ids follow the time.
    const newest = 'select id, checkout_token as token from invoices order by id desc limit $1';
    return (await client.query<{ id: string; token: string }>(newest, [MAX_PATHS])).rows;
  });
  const paths = rows.flatMap(({ id, token }) => [
    `/v1/invoices/${encodeId('inv', id)}`,
    `/v1/invoices/${encodeId('inv', id)}?expand=payment`,
    `/c/${token}`,
    `/c/${token}/status`,
  ]);
  paths.push(
    '/v1/invoices/none',
    '/nothing',
    '/c/none',
    '/v1/events?limit=10',
    '/v1/invoices?externalId=none',
    '/openapi.json',
  );
  const common = { connections: CONNECTIONS, seconds: SEGMENT_SECONDS, createEvery: CREATE_EVERY };
  const job: FloodJob = { url, ...common, apiKey: shop.apiKey, paths };
  const result = await ask<FloodResult | { error: string }>(flooder, job);
  if ('error' in result) throw new Error(`the flood failed: ${result.error}`);
  return result;
}

async function keepSampling(
  { onProgress }: BenchContext,
  service: Child,
  startedMs: number,
  signal: AbortSignal,
): Promise<Sample[]> {
  const samples: Sample[] = [];
  while (!signal.aborted) {
    const memory = await ask<ServiceMemory>(service, { kind: 'memory' });
    const sample = { seconds: (Date.now() - startedMs) / 1000, ...memory, rss: await residentBytes(service.pid) };
    samples.push(sample);
    if (samples.length % 6 === 1) {
      onProgress(`${Math.round(sample.seconds)} s: heap ${mb(sample.heapUsed)} MB, resident ${mb(sample.rss)} MB`);
    }
    await delay(SAMPLE_MS, undefined, { signal }).catch(() => undefined);
  }
  return samples;
}

async function keepWriting({ client, shop, endpointId }: World, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await writeEvents(client, shop.projectId, [endpointId], (EVENTS * EVENTS_EVERY_MS) / 1000);
    await delay(EVENTS_EVERY_MS, undefined, { signal }).catch(() => undefined);
  }
}

function keepStreaming({ shop, url }: World, signal: AbortSignal): Promise<void>[] {
  return Array.from({ length: STREAMS }, async (_, index) => {
    const headers = { 'x-forwarded-for': `198.51.101.${index}` };
    const token = await onServer(shop.connection, async (client) => {
      const { rows } = await client.query<{ token: string }>(
        'select checkout_token as token from invoices order by id offset $1 limit 1',
        [index],
      );
      return rows[0]?.token ?? '';
    });
    while (!signal.aborted) {
      const patience = AbortSignal.any([signal, AbortSignal.timeout(STREAM_MS)]);
      // The stream ends when the client cuts it, as a closed page does. If the service refused it, the client tries again.
      await fetch(`${url}/c/${token}/live`, { headers, signal: patience })
        .then((stream) => stream.text())
        .catch(() => undefined);
      await delay(20);
    }
  });
}

function mb(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}
