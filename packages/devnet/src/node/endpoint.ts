import type { Ledger, LedgerView } from '../chain/ledger.ts';
import type { Parameters } from '../chain/parameters.ts';
import type { Witness } from '../chain/schedule.ts';

/** `now` (in milliseconds) never returns the same value twice, so that equal transactions built by the node differ. */
export interface EndpointContext {
  readonly ledger: Ledger;
  readonly view: LedgerView;
  readonly witnesses: readonly Witness[];
  readonly parameters: Parameters;
  readonly visible: boolean;
  readonly now: () => number;
}

/** Returns the response to a request, as the value of its JSON body. Throws ParameterError if a node responds with `{"Error":…}`. */
export type Endpoint = (context: EndpointContext) => unknown;
