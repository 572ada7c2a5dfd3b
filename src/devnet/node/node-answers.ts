import type { Ledger } from '../chain/ledger.ts';
import { booleanParameter, ParameterError, type Parameters } from '../chain/parameters.ts';
import { distort } from '../faults/distort.ts';
import { type Fault, faultsAt, type SettledFault, settleFault } from '../faults/faults.ts';
import { viewWith, witnessesWith } from '../faults/lying-view.ts';
import type { Resealed } from '../faults/reseal.ts';
import { ENDPOINTS } from './endpoints.ts';

/** The faults of a node, and the answers made up for them, by the faults of a path. */
export interface Sickness {
  readonly faults: readonly SettledFault[];
  readonly resealed: Map<string, Resealed>;
}

/** Decides what the faults leave open as of now; none is health. */
export function fallSick(ledger: Ledger, faults: readonly Fault[]): Sickness {
  const solidNumber = ledger.solidNumber();
  return { faults: faults.map((fault) => settleFault(fault, solidNumber)), resealed: new Map() };
}

/** A request is answered from this: the chain as a node knows it, and what the node makes of it. */
export interface Answering {
  readonly ledger: Ledger;
  readonly now: () => number;
  readonly sickness: Sickness;
}

/** The chain as a node shows it at a path, and the faults that concern it. */
export function viewAt({ ledger, sickness }: Answering, path: string, kind: 'full' | 'solid') {
  const faults = faultsAt(sickness.faults, path);
  return { faults, view: viewWith(ledger, kind, faults, resealedFor(sickness, faults)) };
}

/**
 * The answer of a node with these faults, as JSON will carry it; refusals are the transport's matter. Throws a ParameterError
 * for a path that is no endpoint and for parameters that a node refuses.
 */
export function answerRequest(node: Answering, path: string, parameters: Parameters): unknown {
  const endpoint = ENDPOINTS.get(path);
  if (endpoint === undefined) throw new ParameterError(`${path} is no endpoint`);
  const { ledger, now } = node;
  const { faults, view } = viewAt(node, path, endpoint.kind);
  const witnesses = witnessesWith(ledger, faults);
  const visible = booleanParameter(parameters, 'visible');
  return distort(faults, path, endpoint.run({ ledger, view, witnesses, parameters, visible, now }));
}

function resealedFor({ faults, resealed }: Sickness, concerned: readonly SettledFault[]): Resealed {
  const key = concerned.map((fault) => faults.indexOf(fault)).join();
  const known = resealed.get(key) ?? new Map();
  resealed.set(key, known);
  return known;
}
