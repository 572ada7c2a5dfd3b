import { say } from '../../domain/message.ts';
import type { Network } from '../../domain/network.ts';
import type { ActionName } from '../actions.ts';
import { type Range, readRange } from '../chain/read-range.ts';
import { clip } from '../input/clip.ts';
import { FieldError } from '../input/field-error.ts';

export const JOB_KINDS = ['verify', 'rescan', 'reconcile'] as const;
export type JobKind = (typeof JOB_KINDS)[number];

/** Who may run the use case may start its job, and stop it. */
export const JOB_ACTIONS = {
  verify: 'verifyRange',
  rescan: 'rescanRange',
  reconcile: 'reconcileNow',
} as const satisfies Record<JobKind, ActionName>;

/** What a job does. A job of the books concerns all addresses. */
export type JobWork = { kind: 'verify' | 'rescan'; range: Range } | { kind: 'reconcile'; range: null };
export type JobOrder = JobWork & { network: Network };

type Given = { kind: string; from?: string | undefined; to?: string | undefined };

/** Errors: `INVALID_ARGUMENT`. */
export function readJobWork({ kind: text, from, to }: Given): JobWork {
  const kind = JOB_KINDS.find((each) => each === text);
  if (kind === undefined) throw new FieldError('kind', `is ${clip(text)}: choose ${JOB_KINDS.join(', ')}`);
  if (kind !== 'reconcile') return { kind, range: readRange({ from: from ?? '', to: to ?? '' }) };
  if (from === undefined && to === undefined) return { kind, range: null };
  throw new FieldError('from', say`and ${{ field: 'to' }} are for blocks, and this compares addresses: leave them out`);
}

/** `verify blocks 1 to 300`. */
export function nameWork({ kind, range }: JobWork): string {
  return range === null ? `${kind} all addresses` : `${kind} blocks ${range.from} to ${range.to}`;
}
