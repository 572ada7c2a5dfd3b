import type { ActionName } from '../../src/faces/operator/actions.ts';

/** The actions that an interface doesn't offer, and why. Operations without a route are listed in `operations.test.ts`. */
type Told = Readonly<Partial<Record<ActionName, string>>>;

const FILES = 'it uses files on its own machine, or works as the table owner, and the service may be stopped';
const DECIDES = 'the server administrator must first compare data with a block explorer, and rarely needs this command';
const STREAM =
  'its response is endless or has no size limit; console pages show the same data page by page, with bounded exports';

const ADAPTER = 'the person who sets up a shop does this once; the rate and deliveries are on the webhook pages';

export const NOT_IN_CONSOLE: Told = {
  ...{ checkSchema: FILES, makeKey: FILES, verifyBackup: FILES, createBackup: FILES },
  ...{ restoreBackup: FILES, acceptRestore: FILES, sealLedger: FILES, checkSeals: FILES, acceptRow: FILES },
  rotateMasterKey: 'the new key is set in a variable or file for every service process',
  ...{ passBlock: DECIDES, acceptProducers: DECIDES, repairRange: DECIDES },
  ...{ makeCheckpoint: DECIDES, checkCheckpoint: DECIDES },
  ...{ tailEvents: STREAM, exportTransfers: STREAM },
  ...{ enableAdapter: ADAPTER, disableAdapter: ADAPTER },
  findDerivationKey: 'console pages find the key together with its addresses',
  limitDerivation:
    'the console sets the limit of a new key when it derives addresses; to change it later, use the command',
};

const PERSON = 'it concerns the person who is signed in, and a command has no session';
const JOB = 'a command queries the nodes itself and shows its progress; jobs belong to a console process';
const PAGE =
  'it is the content of a page; "explain", "report", "export" and "status" give the same data to programs and people';
const PROCESS = 'it describes the service process that handles the request, not a command: see "doctor"';

export const NOT_BY_COMMAND: Told = {
  ...{ listOwnSessions: PERSON, endOwnSession: PERSON, endOtherSessions: PERSON, stepUp: PERSON },
  ...{ listOwnPasskeys: PERSON, addPasskey: PERSON, removePasskey: PERSON },
  ...{ startJob: JOB, listJobs: JOB, showJob: JOB, stopJob: JOB, compareBalances: JOB },
  ...{ showToday: PAGE, showSettings: PAGE, findSubject: PAGE },
  ...{ listBalances: PAGE, showAddress: PAGE, showAddressChange: PAGE, showDerivation: PAGE },
  requestBackup: '"backup" creates a backup immediately, without another process',
  ...{ showSystem: PROCESS, showEnvironment: PROCESS },
};
