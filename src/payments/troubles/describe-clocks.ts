import type { Verdict } from '../../domain/clocks.ts';

const UNITS = [
  [172_800_000, 86_400_000, 'days'],
  [7_200_000, 3_600_000, 'hours'],
  [120_000, 60_000, 'minutes'],
] as const;

const REMEDY = 'Set the clocks of the machines, and have them kept right (chrony)';

/** Which clock is wrong and by how much, for everybody to read; `null` where none is. */
export function describeClocks(verdict: Verdict, isCorrected: boolean): string | null {
  switch (verdict.kind) {
    case 'right':
      return null;
    case 'process':
      return `the clock of this process is ${off(verdict.byMs)}: the database and the chain agree. It goes by theirs meanwhile. ${REMEDY}`;
    case 'database':
      return `the clock of the database is ${off(verdict.byMs)}: this process and the chain agree. ${REMEDY}`;
    case 'both':
      return `the clocks of this process and of the database are ${off(verdict.byMs)}, at least: a verified block is later. ${isCorrected ? 'It goes by the chain meanwhile. ' : ''}${REMEDY}`;
    case 'unclear':
      return `${describeUnclear(verdict)}. Nothing is deleted before it has passed by all of them. ${REMEDY}`;
  }
}

function describeUnclear({ process, database }: Extract<Verdict, { kind: 'unclear' }>): string {
  if (database === 0) {
    return `the clocks of this process and of the database are ${duration(Math.abs(process))} apart, and it cannot be told which is wrong, for no chain that goes on as time does agrees with one of them`;
  }
  return `the clocks of this process and of the database are ${off(Math.min(process, database))} by the chain that nodes show, which goes on as time does: it cannot be told whether they are wrong, or all nodes show what is old`;
}

function off(byMs: number): string {
  return `${duration(Math.abs(byMs))} ${byMs < 0 ? 'behind' : 'ahead'}`;
}

/** In the largest unit of which it has two: `60 minutes`. */
export function duration(ms: number): string {
  const [, unitMs, name] = UNITS.find(([from]) => ms >= from) ?? [0, 1000, 's'];
  return `${Math.round(ms / unitMs)} ${name}`;
}
