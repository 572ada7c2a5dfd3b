import { appendFileSync, readFileSync } from 'node:fs';
import { formatPlan, type Plan, parsePlan } from './world/plan.ts';

const FILE = new URL('seeds.txt', import.meta.url);

/** Reads the plans that once failed. A line that begins with # explains the following ones. */
export function readSeeds(file: URL = FILE): Plan[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.filter((line) => line.trim() !== '' && !line.startsWith('#')).map(parsePlan);
}

/** Adds a failed plan to the others, once. */
export function keepSeed(plan: Plan, violations: readonly string[], file: URL = FILE): void {
  const line = formatPlan(plan);
  if (readSeeds(file).some((kept) => formatPlan(kept) === line)) return;
  const reason = (violations[0] ?? 'nothing').replace(/\s+/g, ' ').slice(0, MAX_REASON);
  appendFileSync(file, `# Broke: ${reason}\n${line}\n`);
}

const MAX_REASON = 160;

/** The report of a failed simulation. */
export function failureText(plan: Plan, violations: readonly string[]): string {
  return `simulation "${formatPlan(plan)}" broke promises:\n${violations.slice(0, 20).join('\n')}`;
}
