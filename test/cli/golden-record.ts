import { tmpdir } from 'node:os';
import { expect, vi } from 'vitest';
import { at } from './explain-ledger.ts';
import { type CliOptions, runCli } from './run-cli.ts';

/** Where the record of a part is kept: as somebody sees it who types the commands. */
const fileOf = (part: string) => `golden/commands/${part}.txt`;

/** The run of commands whose every byte is compared with what was recorded of them. */
export type Recording = {
  /** Runs a command a second after the one before. Returns what --json printed. */
  // biome-ignore lint/suspicious/noExplicitAny: the record is what checks the shape.
  run(args: readonly string[], options?: CliOptions): Promise<any>;
  /** For people, and then for machines. */
  both(args: readonly string[], options?: CliOptions): Promise<void>;
  /** The same, after all that the audit log has of it. */
  finishAudited(options?: CliOptions): Promise<void>;
  /** Compares what was run since the beginning with the record. */
  finish(): Promise<void>;
};

/**
 * Begins at noon of the day of the ledger: nothing that is printed depends on when it is run. `named` are texts that differ in each
 * run, with what stands in the record for them; it may grow until the end. `vi.useRealTimers` belongs to the end of the test.
 */
export function startRecording(part: string, env: NodeJS.ProcessEnv, named: Record<string, string> = {}): Recording {
  let now: number = at('12:00:00');
  vi.useFakeTimers({ toFake: ['Date'], now });
  const shown: string[] = [];
  const run: Recording['run'] = async (args, options = {}) => {
    now += 1000;
    vi.setSystemTime(now);
    const { code, stdout, stderr, json } = await runCli(args, {
      ...options,
      env: { SUDO_USER: 'anna', ...env, ...options.env },
    });
    const notes = stderr.replace(PROGRESS, '');
    const told = notes === '' ? '' : `[stderr]\n${notes}`;
    shown.push(`$ quittance ${args.map(quote).join(' ')}\n${stdout}${told}[exit ${code}]\n`);
    return json;
  };
  const finish = () => {
    const text = settle(shown.join('\n'), named);
    // Before it is compared, so that no crash is ever recorded.
    expect(text).not.toMatch(CRASH);
    return expect(text).toMatchFileSnapshot(fileOf(part));
  };
  return {
    run,
    both: async (args, options) => {
      await run(args, options);
      await run([...args, '--json'], options);
    },
    finishAudited: async (options) => {
      await run(['audit', 'list', '--limit', '1000'], options);
      await finish();
    },
    finish,
  };
}

/** What a command prints that failed in a way nobody planned: a stack, or that the error was unexpected. */
const CRASH = /^ +at .*:\d+:\d+\)?$|\bunexpected: |"FAILED"/m;

/** Comes only on a slow machine. */
const PROGRESS = /^(?:\w+: read up to block|\d+ of \d+ blocks,) .*\n/gm;

/** As a shell takes it. */
function quote(argument: string): string {
  return /^[\w./:,=@+…-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", "'\\''")}'`;
}

/** While `Date` stands still. */
function realNow(): number {
  return performance.timeOrigin + performance.now();
}

/** What is drawn by lot, in words of the same length, for tables: its kind, and where it first appeared among its kind. */
const DRAWN: readonly RegExp[] = [
  /\b(?:inv|evt|prj|key|whe|trf|req|usr|ses|adm|chg|chn|ntf)_[0-7][0-9a-hjkmnp-tv-z]{25}\b/g,
  /\bqt_(?:test|live)_\w+/g,
  /\bqa_[0-9a-z]{26}\w+/g,
  /\bwhsec_[A-Za-z0-9+/=]{20,}/g,
  /\bage1[0-9a-z]{58}\b/g,
  /\binvitation\/[\w-]{43}/g,
  /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g,
];

/** Ids that a test gave hold little but zeros, and are kept. */
const isGiven = (id: string) => /0{8}/.test(id);

/** Replaces what is different in each run, and nothing else. */
function settle(text: string, named: Record<string, string>): string {
  let settled = text.replaceAll(tmpdir(), '<tmp>').replace(/<tmp>\/quittance-\w+-\w{6}/g, '<dir>');
  for (const [value, name] of Object.entries(named)) settled = settled.replaceAll(value, name);
  for (const pattern of DRAWN) {
    const places = new Map<string, number>();
    settled = settled.replace(pattern, (drawn) => {
      if (isGiven(drawn)) return drawn;
      if (!places.has(drawn)) places.set(drawn, places.size + 1);
      const kind = /^age1|^invitation\/|^[a-z]+_(?:test_|live_)?/.exec(drawn)?.[0] ?? '';
      return kind + String(places.get(drawn)).padStart(drawn.length - kind.length, 'x');
    });
  }
  settled = settled.replace(/("latencyMs": |latency +)\d+/g, '$1<ms>').replace(/("bytes": ?|size +)\d+/g, '$1<bytes>');
  settled = settled.replace(/"release": "[^"]+"/g, '"release": "<version>"');
  settled = settled.replace(/("change":"[^"]+","digest":)"[0-9a-f]{64}"/g, '$1"<digest>"');
  // What PostgreSQL's own clock wrote.
  return settled.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, (time) => {
    const ms = Date.parse(time);
    return ms > performance.timeOrigin && ms < realNow() + 1000 ? '<now>'.padEnd(time.length, '_') : time;
  });
}
