import * as explain from '../explain/explain.ts';
import type { LocalOperation, Operation } from '../operation.ts';
import * as adapters from '../subjects/adapters.ts';
import * as addressChanges from '../subjects/address-changes.ts';
import * as addresses from '../subjects/addresses.ts';
import * as adminKeys from '../subjects/admin-keys.ts';
import * as audit from '../subjects/audit.ts';
import * as capacity from '../subjects/capacity.ts';
import * as chain from '../subjects/chain.ts';
import * as chainProducers from '../subjects/chain-producers.ts';
import * as deliveries from '../subjects/deliveries.ts';
import * as deliveryReplay from '../subjects/delivery-replay.ts';
import * as keys from '../subjects/keys.ts';
import * as masterKeys from '../subjects/master-keys.ts';
import * as notify from '../subjects/notify.ts';
import * as projects from '../subjects/projects.ts';
import * as receipts from '../subjects/receipts.ts';
import * as reports from '../subjects/reports.ts';
import * as requests from '../subjects/requests.ts';
import * as transferDecisions from '../subjects/transfer-decisions.ts';
import * as transfers from '../subjects/transfers.ts';
import * as webhookSending from '../subjects/webhook-sending.ts';
import * as webhooks from '../subjects/webhooks.ts';

/** Includes operations that only run locally. */
export const ALL: readonly LocalOperation[] = [
  ...projects.operations,
  ...keys.operations,
  ...masterKeys.operations,
  ...receipts.operations,
  ...addresses.operations,
  ...capacity.operations,
  ...addressChanges.operations,
  ...webhooks.operations,
  ...webhookSending.operations,
  ...adapters.operations,
  ...notify.operations,
  ...deliveries.operations,
  ...deliveryReplay.operations,
  ...requests.operations,
  ...transfers.operations,
  ...transferDecisions.operations,
  ...reports.operations,
  ...explain.operations,
  ...chain.operations,
  ...chainProducers.operations,
  ...audit.operations,
  ...adminKeys.operations,
];

/** Every operation with a route. */
export const OPERATIONS = ALL.filter((each): each is Operation => 'path' in each);
