import type { ActionName } from '../actions.ts';

/** What a face cannot do, and why. What cannot be run over the wire stands in `operations.ts`. */
type Told = Readonly<Partial<Record<ActionName, string>>>;

const FILES = 'it works on files of the machine, or as the owner of the tables, while the service may be stopped';
const DECIDES =
  'what it decides on is compared with an explorer first, and it is done once in years, by who has the machine';
const STREAM = 'its answer has no end, or any size: the pages show the same by pieces, and their exports are bounded';

const ADAPTER =
  'it is done once for a shop, by who sets the shop up beside it; its rate and deliveries are on the pages of webhooks';

export const NOT_IN_CONSOLE: Told = {
  ...{ checkSchema: FILES, makeKey: FILES, verifyBackup: FILES, createBackup: FILES },
  ...{ restoreBackup: FILES, acceptRestore: FILES, sealLedger: FILES, checkSeals: FILES, acceptRow: FILES },
  rotateMasterKey: 'the new key comes from a variable or a file of every process of the service',
  ...{ passBlock: DECIDES, acceptProducers: DECIDES, repairRange: DECIDES },
  ...{ makeCheckpoint: DECIDES, checkCheckpoint: DECIDES },
  ...{ tailEvents: STREAM, exportTransfers: STREAM },
  ...{ enableAdapter: ADAPTER, disableAdapter: ADAPTER },
  findDerivationKey: 'the pages find the key with the addresses that it yields',
  limitDerivation:
    'the console sets the limit of a new key when addresses are derived from it; another one later takes the command',
};

const PERSON = 'it is of the person who is signed in, and a command has no session';
const JOB = 'a command asks the nodes itself and shows how far it is; jobs are of a process of the console';
const PAGE = 'it is what a page shows: "explain", "report", "export" and "status" say the same to programs and people';
const PROCESS = 'it is about the process that answers, which a command is not: see "doctor"';

export const NOT_BY_COMMAND: Told = {
  ...{ listOwnSessions: PERSON, endOwnSession: PERSON, endOtherSessions: PERSON, stepUp: PERSON },
  ...{ listOwnPasskeys: PERSON, addPasskey: PERSON, removePasskey: PERSON },
  ...{ startJob: JOB, listJobs: JOB, showJob: JOB, stopJob: JOB, compareBalances: JOB },
  ...{ showToday: PAGE, showSettings: PAGE, findSubject: PAGE },
  ...{ listBalances: PAGE, showAddress: PAGE, showAddressChange: PAGE, showDerivation: PAGE },
  requestBackup: '"backup" makes one at once, and needs no other process for it',
  ...{ showSystem: PROCESS, showEnvironment: PROCESS },
};
