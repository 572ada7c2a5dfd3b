import type { ActionName } from '../actions.ts';
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

const FILES = 'it uses files and the database on its own machine, where the service may be stopped';
const LONG = 'it queries nodes for minutes or hours, which requires a job with progress';
const JOB = 'its jobs exist only in the memory of a console process, which shows them on its pages';
const STREAM = 'its response is endless or has no size limit, but responses here must fit in memory';
const WALLET = 'a person has to compare addresses with a wallet during the operation';
const SECOND_FACTOR = 'it changes how people sign in, which requires a second factor that a key does not have';
const OWN = 'it concerns the person who is signed in, and a key is not a person';
const PAGE = 'it is the content of a console page; programs read invoices through the API, and totals from the report';
const PROCESS = 'it describes the process that handles the request, as shown on a page of its console';

const OWNER = 'it requires the table owner, and the service is a different database user';

/** The operations without a route, and why. */
export const LOCAL_ACTIONS: Readonly<Partial<Record<ActionName, string>>> = {
  ...{ runDoctor: FILES, checkSchema: FILES, makeKey: FILES, verifyBackup: FILES, createBackup: FILES },
  ...{ restoreBackup: FILES, acceptRestore: FILES },
  rotateMasterKey: 'the new key is set in a variable or file for every service process',
  ...{ reconcileNow: LONG, verifyRange: LONG, rescanRange: LONG, repairRange: LONG, checkCheckpoint: LONG },
  ...{ startJob: JOB, listJobs: JOB, showJob: JOB, stopJob: JOB },
  ...{ passBlock: LONG, acceptProducers: LONG },
  ...{ sealLedger: OWNER, checkSeals: OWNER, acceptRow: OWNER },
  ...{ tailEvents: STREAM, exportTransfers: STREAM, exportAudit: STREAM },
  ...{ invitePerson: SECOND_FACTOR, changeRole: SECOND_FACTOR, resetPerson: SECOND_FACTOR },
  ...{ removePerson: SECOND_FACTOR, listPeople: SECOND_FACTOR, listSessions: SECOND_FACTOR, endSession: SECOND_FACTOR },
  ...{ listOwnSessions: OWN, endOwnSession: OWN, endOtherSessions: OWN, stepUp: OWN },
  ...{ listOwnPasskeys: OWN, addPasskey: OWN, removePasskey: OWN },
  ...{ showSettings: PAGE, showToday: PAGE, listInvoices: PAGE, showInvoice: PAGE, exportInvoices: PAGE },
  ...{ createInvoiceByHand: PAGE, withdrawInvoiceByHand: PAGE, requestBackup: PAGE, findSubject: PAGE },
  ...{ showSystem: PROCESS, showEnvironment: PROCESS },
  ...{ findDerivationKey: WALLET, showDerivation: WALLET, deriveAddresses: WALLET, limitDerivation: WALLET },
  ...{ showAddress: PAGE, listBalances: PAGE, compareBalances: LONG },
  confirmAddressChange: 'another owner must confirm with a second factor, which a key does not have',
};
