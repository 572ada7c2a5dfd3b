import { readFileSync } from 'node:fs';
import { formatPlan, type Plan, parsePlan } from './world/plan.ts';

const FILE = new URL('seeds.txt', import.meta.url);

/** The plans that once failed. A line that begins with # explains the next ones. */
export function readSeeds(): Plan[] {
  const lines = readFileSync(FILE, 'utf8').split('\n');
  return lines.filter((line) => line.trim() !== '' && !line.startsWith('#')).map(parsePlan);
}

/** What a failing simulation tells: how to see it again, and what to keep. */
export function failureText(plan: Plan, violations: readonly string[]): string {
  const line = formatPlan(plan);
  return `simulation "${line}" broke promises; it belongs into test/simulation/seeds.txt:\n${violations.slice(0, 20).join('\n')}`;
}
