import { EVENT_TYPE_WIDTH } from '../../core/domain/event.ts';
import {
  type ListenOptions,
  type ListenReport,
  listen,
  readListenSecret,
  readListenSettings,
} from '../../developer/listen/listen.ts';
import { printable, printableJson } from '../../faces/operator/input/problems.ts';
import { loadConfig } from '../terminal/load-config.ts';
import { stopSignal, type Terminal } from '../terminal/terminal.ts';

/** Runs `quittance listen` until a signal arrives or the npm process that started it dies, or just prints the secret for a key. */
export async function runListen(
  terminal: Terminal,
  { printSecret, ...options }: ListenOptions & { printSecret?: true | undefined },
  control: { signal?: AbortSignal; pollMs?: number } = {},
): Promise<void> {
  const { env, note } = terminal;
  const named = { ...options, env, dataDir: () => loadConfig(terminal).dataDir };
  if (printSecret === true) {
    const secret = await readListenSecret(named);
    terminal.print({ data: { secret }, text: secret });
    return;
  }
  const settings = await readListenSettings(named);
  const { signal = stopSignal(130), pollMs } = control;
  const report = terminal.json ? printRecord : printLine;
  const reporting = { report: (each: ListenReport) => report(terminal, each), note };
  await listen(settings, { env, signal, pollMs, ...reporting });
}

function printRecord({ stdout }: Terminal, report: ListenReport): void {
  stdout.write(`${printableJson(JSON.stringify(report))}\n`);
}

function printLine({ stdout, env, note }: Terminal, report: ListenReport): void {
  if (report.kind === 'listening') {
    const { server, forwardTo, secret } = report;
    stdout.write(`listening to ${server}, forwarding to ${forwardTo}\nsigning secret: ${secret}\n`);
    return;
  }
  stdout.write(`${eventLine(report, stdout.isTTY === true && env['NO_COLOR'] === undefined)}\n`);
  if (!isGood(report)) note(`  to receive this event again, start with --after ${report.before ?? 'beginning'}`);
}

type EventReport = Extract<ListenReport, { kind: 'event' }>;

const RED = '\u001b[31m';
const RESET = '\u001b[39m';

/** Returns a line such as `12:04:05  invoice.paid  evt_…  inv_… order-17  → 200 in 12 ms`, in red if the response isn't a success. */
export function eventLine(report: EventReport, hasColor: boolean): string {
  const { at, id, type, invoiceId, externalId, status, elapsedMs, answer, code } = report;
  const join = (parts: readonly (string | null)[], separator: string) =>
    parts.filter((part) => part !== null && part !== '').join(separator);
  const time = new Date(at).toTimeString().slice(0, 8);
  const line = join([time, type.padEnd(EVENT_TYPE_WIDTH), id, join([invoiceId, externalId], ' ')], '  ');
  const result = join([`→ ${status} in ${elapsedMs} ms`, join([code, answer], ': ')], '  ');
  return `${printable(line)}  ${isGood(report) || !hasColor ? result : `${RED}${result}${RESET}`}`;
}

function isGood({ status }: EventReport): boolean {
  return status >= 200 && status < 300;
}
