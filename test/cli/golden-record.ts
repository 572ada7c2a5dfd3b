import { tmpdir } from 'node:os';
import { expect, vi } from 'vitest';
import { at } from './explain-ledger.ts';
import { type CliOptions, runCli } from './run-cli.ts';

/** The file of a part's recording, in the form of a terminal session. */
const fileOf = (part: string) => `golden/commands/${part}.txt`;

/** A sequence of commands whose output is compared with its recording byte by byte. */
export type Recording = {
  /** Runs a command one second after the previous one, and returns its --json output. */
  // biome-ignore lint/suspicious/noExplicitAny: the record is what checks the shape.
  run(args: readonly string[], options?: CliOptions): Promise<any>;
  /** Runs a command for people, then for programs. */
  both(args: readonly string[], options?: CliOptions): Promise<void>;
  /** Finishes with the audit log of everything that was done. */
  finishAudited(options?: CliOptions): Promise<void>;
  /** Compares everything that was run with the recording. */
  finish(): Promise<void>;
};

/**
 * Starts at noon on the ledger's day, so that the output doesn't depend on the time. `named` maps texts that differ in each run to their
 * replacements in the recording; entries may be added until the end. The test must call `vi.useRealTimers` when it ends.
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
    // Checked before the comparison, so that a crash is never recorded.
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

/** The output of a command that failed unexpectedly: a stack trace, or the word itself. */
const CRASH = /^ +at .*:\d+:\d+\)?$|\bunexpected: |"FAILED"/m;

/** Only appears on a slow machine. */
const PROGRESS = /^(?:\w+: read up to block|\d+ of \d+ blocks,) .*\n/gm;

/** Quotes an argument for a shell. */
function quote(argument: string): string {
  return /^[\w./:,=@+…-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", "'\\''")}'`;
}

/** Works while `Date` is frozen. */
function realNow(): number {
  return performance.timeOrigin + performance.now();
}

/**
 * Random ids are replaced by texts of the same length, so that tables keep their layout: the kind of id, and the order of its first
 * appearance.
 */
const DRAWN: readonly RegExp[] = [
  /\b(?:inv|evt|prj|key|whe|trf|req|usr|ses|adm|chg|chn|ntf)_[0-7][0-9a-hjkmnp-tv-z]{25}\b/g,
  /\bqt_(?:test|live)_\w+/g,
  /\bqa_[0-9a-z]{26}\w+/g,
  /\bwhsec_[A-Za-z0-9+/=]{20,}/g,
  /\bage1[0-9a-z]{58}\b/g,
  /\binvitation\/[\w-]{43}/g,
  /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g,
];

/** Ids chosen by a test consist mostly of zeros, and are kept. */
const isGiven = (id: string) => /0{8}/.test(id);

/** Replaces everything that differs in each run, and nothing else. */
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
  // Times from PostgreSQL's own clock.
  return settled.replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, (time) => {
    const ms = Date.parse(time);
    return ms > performance.timeOrigin && ms < realNow() + 1000 ? '<now>'.padEnd(time.length, '_') : time;
  });
}
