import { expect, test } from 'vitest';
import { say } from '../../../core/domain/message.ts';
import { ACTIONS, type ActionName } from '../actions.ts';
import { OPERATIONS } from './operations.ts';
import { readOutcome, writeOutcome } from './outcome-json.ts';

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
const LOCAL_ACTIONS: Readonly<Partial<Record<ActionName, string>>> = {
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

test('every use case can be run over the wire, or a list says why not', () => {
  const here = OPERATIONS.map(({ action }) => action as string);
  const told = Object.keys(LOCAL_ACTIONS);
  expect([...here, ...told].sort()).toEqual(Object.keys(ACTIONS).sort());
});

test('no two operations have the same route, and each names members of its input', () => {
  const routes = OPERATIONS.map(({ method, path }) => `${method} ${path.replace(/:\w+/g, ':')}`);
  expect(new Set(routes).size).toBe(routes.length);
  for (const { path, input } of OPERATIONS) {
    const members = Object.keys((input as unknown as { properties: object }).properties);
    expect(members).toEqual(expect.arrayContaining([...path.matchAll(/:(\w+)/g)].map(([, name]) => name)));
  }
});

test('what reads does not change: GET is for what leaves no trace, and nothing else', () => {
  const changing = OPERATIONS.filter(({ action }) => 'records' in ACTIONS[action]);
  expect(changing.filter(({ method }) => method === 'GET')).toEqual([]);
  const reading = OPERATIONS.filter((each) => !changing.includes(each));
  expect(reading.filter(({ method }) => method !== 'GET')).toEqual([]);
});

test('an outcome comes back as it was, with texts whose names are data', () => {
  const outcome = {
    at: 1,
    none: null,
    big: 2n ** 64n,
    text: say`give ${{ field: 'xpub' }}: ${{ command: 'key list' }}`,
  };
  expect(readOutcome(writeOutcome(outcome))).toEqual(outcome);
});
