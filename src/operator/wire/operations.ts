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

const ALL: readonly LocalOperation[] = [
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

/** Every operation that can be run over the wire. */
export const OPERATIONS = ALL.filter((each): each is Operation => 'path' in each);

const FILES = 'it works on files and the database of the machine that it runs on, while the service may be stopped';
const LONG = 'it asks nodes for minutes or hours, which takes a job with progress';
const JOB = 'it is of the jobs that a process of the console has in memory, and its pages show them';
const STREAM = 'its answer has no end, or any size, and no answer here is longer than memory';
const WALLET = 'in the middle a person compares addresses with a wallet';
const SECOND_FACTOR = 'it gives or takes what people sign in with, and a key shows no second factor';
const OWN = 'it is of the person who is signed in, and a key is nobody';
const PAGE = 'it is what a page of the console shows; programs read invoices by the API, and sums from the report';
const PROCESS = 'it is about the one process that answers, as a page of its console shows it';

const OWNER = 'it is done as the owner of the tables, whom the service is not';

/** What cannot be run over the wire, and why. */
export const LOCAL_ACTIONS: Readonly<Partial<Record<ActionName, string>>> = {
  ...{ runDoctor: FILES, checkSchema: FILES, makeKey: FILES, verifyBackup: FILES, createBackup: FILES },
  ...{ restoreBackup: FILES, acceptRestore: FILES },
  rotateMasterKey: 'the new key comes from a variable or a file of every process of the service',
  ...{ reconcileNow: LONG, verifyRange: LONG, rescanRange: LONG, repairRange: LONG, checkCheckpoint: LONG },
  ...{ startJob: JOB, listJobs: JOB, showJob: JOB, stopJob: JOB },
  ...{ passBlock: LONG, acceptProducers: LONG },
  ...{ sealLedger: OWNER, checkSeals: OWNER, acceptRow: OWNER },
  ...{ tailEvents: STREAM, exportTransfers: STREAM, exportAudit: STREAM },
  ...{
    invitePerson: SECOND_FACTOR,
    changeRole: SECOND_FACTOR,
    resetPerson: SECOND_FACTOR,
    removePerson: SECOND_FACTOR,
  },
  ...{ listPeople: SECOND_FACTOR, listSessions: SECOND_FACTOR, endSession: SECOND_FACTOR },
  ...{
    listOwnSessions: OWN,
    endOwnSession: OWN,
    endOtherSessions: OWN,
    listOwnPasskeys: OWN,
    addPasskey: OWN,
    removePasskey: OWN,
    stepUp: OWN,
  },
  ...{
    showSettings: PAGE,
    showToday: PAGE,
    listInvoices: PAGE,
    showInvoice: PAGE,
    exportInvoices: PAGE,
    createInvoiceByHand: PAGE,
    withdrawInvoiceByHand: PAGE,
    requestBackup: PAGE,
    findSubject: PAGE,
  },
  ...{ showSystem: PROCESS, showEnvironment: PROCESS },
  ...{ findDerivationKey: WALLET, showDerivation: WALLET, deriveAddresses: WALLET, limitDerivation: WALLET },
  ...{ showAddress: PAGE, listBalances: PAGE, compareBalances: LONG },
  confirmAddressChange: 'another owner proves again who it is, and a key shows no second factor',
};
