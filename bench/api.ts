import type { BenchContext, BenchResult } from './bench-context.ts';
import { measureMemory } from './memory.ts';
import { judge, summarize, toMarkdown } from './report.ts';
import { measureRounds, type Plan } from './rounds.ts';

const FULL: Plan = { invoiceCount: 1_000_000, connections: [1, 16, 64], rounds: 5, seconds: 3, warmUpSeconds: 3 };
const QUICK: Plan = { invoiceCount: 50_000, connections: [1, 64], rounds: 2, seconds: 1, warmUpSeconds: 1 };
const SETTLE_SECONDS = { full: 20, quick: 5 };

/** Measures creating and reading invoices against the bare baseline, and the memory of an idle process. Takes about nine minutes. */
export async function runApi(context: BenchContext): Promise<BenchResult> {
  const { flags, onProgress } = context;
  const plan = flags.quick ? QUICK : FULL;
  onProgress('measuring the memory of an idle process');
  const memory = await measureMemory({
    ...context,
    settleSeconds: flags.quick ? SETTLE_SECONDS.quick : SETTLE_SECONDS.full,
  });
  const samples = await measureRounds({ ...context, plan });
  const { lines, growth } = summarize(samples, plan.connections);
  const targets = judge(lines, growth, memory);
  return {
    markdown: toMarkdown(lines, growth, memory),
    targets,
    record: { plan, lines, growth, memory, samples },
  };
}
