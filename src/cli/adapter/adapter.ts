import {
  disableAdapterOperation,
  enableAdapterOperation,
  listAdaptersOperation,
} from '../../operator/adapters/operations.ts';
import type { AdapterView } from '../../operator/adapters/views.ts';
import { formatFields } from '../../operator/command-text.ts';
import { formatDuration } from '../../operator/input/duration.ts';
import { readSecret, secretHints } from '../terminal/read-secret.ts';
import { runOperation } from '../terminal/run-operation.ts';
import { type Column, tableOf } from '../terminal/table.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';

export async function printEnabledAdapter(
  terminal: Terminal,
  input: Parameters<typeof enableAdapterOperation.read>[0],
): Promise<Result> {
  const secret = await readSecret(input.secret, terminal);
  const data = await runOperation(terminal, enableAdapterOperation, { ...input, secret });
  return {
    data,
    text: formatFields([
      ['adapter', data.adapterId],
      ['project', data.projectId],
      ['network', data.network],
      ['kind', data.kind],
      ['rate', `${data.rate} ${data.currency} for 1 USDT`],
      ['bounds', `${data.rateMin} to ${data.rateMax}`],
      ...(data.rateSource === null ? [] : sourceFields(data.rateSource)),
      ['path', data.path],
      ['pid', data.pid],
      ['secret', data.secret ?? 'as it is, not shown'],
    ]),
    next: [
      ...(data.secret === null ? [] : secretHints(input.secret, 'the secret is shown only now')),
      `the shop takes the public URL of this service and ${data.path} as the URL of its gateway: see docs/adapters.md`,
    ].join('\n'),
  };
}

type Source = NonNullable<AdapterView['rateSource']>;

function sourceFields(source: Source): [string, string][] {
  const { url, path, maxAge } = source;
  return [
    ['read from', `${url} ${path}, ${ageOf(source)}`],
    ['oldest', maxAge],
  ];
}

function ageOf({ ageSeconds, isTooOld }: Source): string {
  const age = ageSeconds < 120 ? `${ageSeconds} s` : formatDuration(Math.floor(ageSeconds / 60) * 60_000);
  return `${age} old${isTooOld ? ', too old: orders are refused' : ''}`;
}

export async function printAdapters(terminal: Terminal, input: { projectId: string | undefined }): Promise<Result> {
  const data = await runOperation(terminal, listAdaptersOperation, input);
  return {
    data,
    text: tableOf(ADAPTERS, data.data),
    ...(data.data.length === 0 ? { next: 'no adapter: "quittance adapter enable --kind … --rate …" makes one' } : {}),
  };
}

const ADAPTERS: readonly Column<AdapterView>[] = [
  ['ADAPTER', ({ adapterId }) => adapterId],
  ['KIND', ({ kind }) => kind],
  ['RATE', ({ rate, currency }) => `${rate} ${currency}`],
  ['FROM', ({ rateSource: from }) => (from === null ? 'fixed' : `${from.origin}, ${ageOf(from)}`)],
  ['CREATED', ({ createdAt }) => createdAt],
  [
    'DISABLED',
    ({ disabledAt, callbacksDisabledAt: off }) => disabledAt ?? (off === null ? 'no' : `callbacks since ${off}`),
  ],
  ['PATH', ({ path }) => path],
];

export async function printDisabledAdapter(terminal: Terminal, adapterId: string): Promise<Result> {
  const data = await runOperation(terminal, disableAdapterOperation, { adapterId });
  return { data, text: `disabled ${data.adapterId}` };
}
