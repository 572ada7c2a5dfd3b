import { parseAmount } from '../../domain/money.ts';
import type { Problem } from '../cli-error.ts';
import { clip } from '../clip.ts';
import { parseDuration } from '../duration.ts';
import { nameProblem } from '../name-problem.ts';

/** The name that was given. What is wrong is added to `problems`, so that all of a command is reported at once. */
export function readNameOption(text: string, problems: Problem[]): string {
  const name = text.trim();
  const problem = nameProblem(name);
  if (problem !== null) problems.push({ subject: '--name', message: `--name ${problem}` });
  return name;
}

/** The bounds of the schema: 100 to 1,000,000 micro-USDT. */
const SURCHARGE_MICRO = { least: 100n, most: 1_000_000n };

/** The limit in micro-USDT. */
export function readSurchargeOption(text: string, problems: Problem[]): bigint {
  const parsed = parseAmount(text);
  const micro = parsed.kind === 'ok' ? parsed.amountMicro : 0n;
  if (micro < SURCHARGE_MICRO.least || micro > SURCHARGE_MICRO.most) {
    const message = `--max-surcharge is ${clip(text)}: it takes 0.0001 to 1 USDT, for example 0.01`;
    problems.push({ subject: '--max-surcharge', message });
  }
  return micro;
}

const DAY_MS = 86_400_000;
/** The bounds of the schema. */
const LIFETIME_MS = { least: 300_000, most: 30 * DAY_MS };

/** The lifetime in milliseconds. */
export function readLifetimeOption(text: string, problems: Problem[]): number {
  const lifetimeMs = parseDuration(text) ?? 0;
  if (lifetimeMs < LIFETIME_MS.least || lifetimeMs > LIFETIME_MS.most) {
    const message = `--lifetime is ${clip(text)}: it takes 5m to 30d, for example 30m, 12h or 2d`;
    problems.push({ subject: '--lifetime', message });
  }
  return lifetimeMs;
}

const MAX_UNPAID = 1_000_000;

/** A limit of unpaid invoices; `null` for "none". */
export function readUnpaidOption(subject: string, text: string, problems: Problem[]): number | null {
  if (text === 'none') return null;
  const limit = /^\d{1,7}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > MAX_UNPAID) {
    problems.push({ subject, message: `${subject} is ${clip(text)}: it takes 1 to ${MAX_UNPAID}, or none` });
  }
  return limit;
}
