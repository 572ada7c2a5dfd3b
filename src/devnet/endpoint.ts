import type { Ledger, LedgerView } from './ledger.ts';
import type { Parameters } from './parameters.ts';
import type { Witness } from './schedule.ts';

/** What an endpoint works with. `now` (milliseconds) never answers the same twice: it keeps equal transactions that the node builds apart. */
export interface EndpointContext {
  readonly ledger: Ledger;
  readonly view: LedgerView;
  readonly witnesses: readonly Witness[];
  readonly parameters: Parameters;
  readonly visible: boolean;
  readonly now: () => number;
}

/** Answers a request with what becomes its JSON body. Throws ParameterError for what a node answers with `{"Error":…}`. */
export type Endpoint = (context: EndpointContext) => unknown;
