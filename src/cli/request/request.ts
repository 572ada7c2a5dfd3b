import { shorten } from '../../operator/explain/explanation.ts';
import { listRequestsOperation, showRequestOperation } from '../../operator/requests/operations.ts';
import type { RequestView } from '../../operator/requests/views.ts';
import { runOperation } from '../terminal/run-operation.ts';
import { type Column, tableOf } from '../terminal/table.ts';
import { formatFields, type Result, type Terminal } from '../terminal/terminal.ts';

const MAX_TEXT = 40;

const REQUESTS: readonly Column<RequestView>[] = [
  ['REQUEST', ({ requestId }) => requestId],
  ['TIME (UTC)', ({ time }) => time],
  ['ASKED', askedText],
  ['STATUS', ({ status }) => String(status)],
  ['CODE', ({ code }) => code ?? ''],
  ['MS', ({ tookMs }) => String(tookMs)],
  ['EXTERNAL ID', ({ externalId }) => shorten(externalId ?? '', MAX_TEXT)],
];

export async function printRequests(
  terminal: Terminal,
  input: Parameters<typeof listRequestsOperation.read>[0],
): Promise<Result> {
  const data = await runOperation(terminal, listRequestsOperation, input);
  const next =
    data.nextBefore === null
      ? data.data.length > 0
        ? {}
        : { next: 'no such requests' }
      : { next: `looked through ${data.looked}: the same command with --before ${data.nextBefore} goes on` };
  return { data, text: tableOf(REQUESTS, data.data), ...next };
}

export async function printRequest(terminal: Terminal, input: { requestId: string }): Promise<Result> {
  const data = await runOperation(terminal, showRequestOperation, input);
  const { projectId, key, externalId, invoiceId } = data;
  const text = formatFields([
    ['request', data.requestId],
    ['time', data.time],
    ['project', projectId ?? 'none: no valid key came with it'],
    ['key', key && `${key.keyId} (${key.name})`],
    ['asked', askedText(data)],
    ['status', data.code === null ? String(data.status) : `${data.status} ${data.code}`],
    ['took', `${data.tookMs} ms`],
    ['external id', externalId],
    ['invoice', invoiceId],
  ]);
  return {
    data,
    text,
    ...(invoiceId === null ? {} : { next: `what happened with it: quittance explain ${invoiceId}` }),
  };
}

function askedText({ method, route }: RequestView): string {
  return `${method} ${route ?? '(nothing is there)'}`;
}
