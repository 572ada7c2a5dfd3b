import type { Ledger, LedgerView } from '../chain/ledger.ts';
import type { Parameters } from '../chain/parameters.ts';
import type { Witness } from '../chain/schedule.ts';

/** `now` (milliseconds) never answers the same twice, so that equal transactions which the node builds stay apart. */
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
