import type { RecordedAction } from '../../core/domain/recorded-action.ts';
import type { Role } from './actor.ts';

/**
 * The rights that a use case requires. `role` is the lowest role allowed. `wide` limits it to people with access to all projects. With
 * `stepUp`, the console asks for the second factor again: `each` asks every time, because the action decides where money or notifications
 * are sent, or who has access; `recent` accepts a proof from the last five minutes. `records` names the audit log entries that the use case
 * writes. This is the only place that decides who may do what.
 */
export type Rule = { role: Role; wide?: true; stepUp?: 'each' | 'recent'; records?: readonly RecordedAction[] };

export const ACTIONS = {
  listAddresses: { role: 'viewer' },
  showCapacity: { role: 'viewer' },
  showCapacityOfAmount: { role: 'viewer' },
  addAddresses: { role: 'owner', stepUp: 'each', records: ['address.added', 'address.proposed'] },
  deriveAddresses: { role: 'owner', stepUp: 'each', records: ['address.derived', 'address.proposed'] },
  findDerivationKey: { role: 'owner' },
  showDerivation: { role: 'owner' },
  limitDerivation: { role: 'owner', stepUp: 'each', records: ['project.changed'] },
  retireAddresses: { role: 'operator', records: ['address.retired'] },
  activateAddresses: { role: 'owner', stepUp: 'each', records: ['address.activated'] },
  showAddress: { role: 'viewer' },
  listBalances: { role: 'viewer' },
  compareBalances: { role: 'viewer', wide: true },

  listAddressChanges: { role: 'viewer' },
  showAddressChange: { role: 'viewer' },
  confirmAddressChange: {
    ...{ role: 'owner', stepUp: 'each' },
    records: ['address.confirmed', 'address.added', 'address.derived', 'address.failed'],
  },
  withdrawAddressChange: { role: 'operator', records: ['address.withdrawn'] },

  listProjects: { role: 'viewer' },
  showProject: { role: 'viewer' },
  showSettings: { role: 'viewer' },
  createProject: { role: 'owner', wide: true, records: ['project.created'] },
  archiveProject: { role: 'owner', stepUp: 'recent', records: ['project.archived'] },
  unarchiveProject: { role: 'owner', stepUp: 'recent', records: ['project.unarchived'] },
  updateProject: { role: 'owner', stepUp: 'recent', records: ['project.changed'] },

  listKeys: { role: 'owner' },
  createKey: { role: 'owner', stepUp: 'each', records: ['key.created'] },
  revokeKey: { role: 'owner', records: ['key.revoked'] },
  listAdminKeys: { role: 'owner', wide: true },
  createAdminKey: { role: 'owner', wide: true, stepUp: 'each', records: ['admin-key.created'] },
  revokeAdminKey: { role: 'owner', wide: true, records: ['admin-key.revoked'] },
  showMasterKeys: { role: 'owner', wide: true },
  rotateMasterKey: { role: 'owner', wide: true, stepUp: 'each', records: ['master-key.rotated'] },
  rotateReceiptKey: { role: 'owner', wide: true, stepUp: 'each', records: ['receipt-key.rotated'] },

  listAdapters: { role: 'viewer' },
  enableAdapter: { role: 'owner', stepUp: 'each', records: ['key.created', 'webhook.added', 'webhook.changed'] },
  disableAdapter: { role: 'owner', records: ['key.revoked'] },

  listEndpoints: { role: 'viewer' },
  showEndpoint: { role: 'viewer' },
  addEndpoint: { role: 'owner', stepUp: 'each', records: ['webhook.added'] },
  updateEndpoint: { role: 'owner', stepUp: 'each', records: ['webhook.changed'] },
  enableEndpoint: { role: 'operator', records: ['webhook.enabled'] },
  disableEndpoint: { role: 'owner', records: ['webhook.disabled'] },
  rotateSecret: { role: 'owner', stepUp: 'each', records: ['webhook.rotated'] },
  testEndpoint: { role: 'operator', records: ['webhook.tested'] },

  listChannels: { role: 'viewer', wide: true },
  addChannel: { role: 'owner', wide: true, stepUp: 'each', records: ['channel.added'] },
  testChannel: { role: 'operator', wide: true, records: ['channel.tested'] },
  removeChannel: { role: 'owner', wide: true, stepUp: 'each', records: ['channel.removed'] },

  listDeliveries: { role: 'viewer' },
  showDelivery: { role: 'viewer' },
  tailEvents: { role: 'viewer' },
  replayPeriod: { role: 'operator', records: ['deliveries.replayed'] },
  replayEvents: { role: 'operator', records: ['deliveries.replayed'] },

  listRequests: { role: 'viewer' },
  showRequest: { role: 'viewer' },

  listTransfers: { role: 'viewer' },
  showTransfers: { role: 'viewer' },
  exportTransfers: { role: 'viewer' },
  resolveTransfers: { role: 'operator', records: ['transfer.resolved'] },
  refundTransfer: { role: 'operator', records: ['transfer.refunded'] },

  explainSubject: { role: 'viewer' },
  findSubject: { role: 'viewer' },

  listInvoices: { role: 'viewer' },
  showInvoice: { role: 'viewer' },
  exportInvoices: { role: 'viewer' },
  createInvoiceByHand: { role: 'operator', records: ['invoice.created'] },
  withdrawInvoiceByHand: { role: 'operator', records: ['invoice.withdrawn'] },

  showToday: { role: 'viewer' },
  showReport: { role: 'viewer' },

  runDoctor: { role: 'owner', wide: true },
  showStatus: { role: 'viewer', wide: true },
  listProducers: { role: 'viewer', wide: true },
  makeCheckpoint: { role: 'viewer', wide: true },
  checkCheckpoint: { role: 'viewer', wide: true },
  reconcileNow: { role: 'viewer', wide: true },
  verifyRange: { role: 'viewer', wide: true },
  startJob: { role: 'viewer', wide: true },
  listJobs: { role: 'viewer', wide: true },
  showJob: { role: 'viewer', wide: true },
  stopJob: { role: 'viewer', wide: true },
  acceptProducers: { role: 'owner', wide: true, stepUp: 'recent', records: ['producers.accepted'] },
  acknowledgeAlarms: { role: 'operator', wide: true, records: ['alarm.acknowledged'] },
  passBlock: { role: 'owner', wide: true, stepUp: 'recent', records: ['block.passed'] },
  rescanRange: { role: 'operator', wide: true, records: ['chain.rescanned'] },
  repairRange: { role: 'owner', wide: true, stepUp: 'recent', records: ['chain.repaired'] },
  resumeChain: { role: 'owner', wide: true, stepUp: 'recent', records: ['chain.resumed'] },

  checkSchema: { role: 'owner', wide: true },
  makeKey: { role: 'owner', wide: true },
  verifyBackup: { role: 'owner', wide: true, records: ['backup.verified'] },
  requestBackup: { role: 'owner', wide: true, stepUp: 'recent', records: ['backup.requested'] },
  createBackup: { role: 'owner', wide: true, stepUp: 'recent', records: ['backup.created'] },
  restoreBackup: { role: 'owner', wide: true, stepUp: 'recent', records: ['backup.restored'] },
  acceptRestore: { role: 'owner', wide: true, stepUp: 'recent', records: ['backup.accepted'] },

  invitePerson: { role: 'owner', stepUp: 'each', records: ['user.invited'] },
  listPeople: { role: 'owner' },
  changeRole: { role: 'owner', stepUp: 'each', records: ['user.changed'] },
  resetPerson: { role: 'owner', stepUp: 'each', records: ['user.reset'] },
  removePerson: { role: 'owner', stepUp: 'each', records: ['user.removed'] },
  listSessions: { role: 'owner' },
  endSession: { role: 'owner', records: ['session.ended'] },
  listOwnSessions: { role: 'viewer' },
  endOwnSession: { role: 'viewer', records: ['session.ended'] },
  endOtherSessions: { role: 'viewer', records: ['session.ended'] },
  listOwnPasskeys: { role: 'viewer' },
  addPasskey: { role: 'viewer', stepUp: 'each', records: ['passkey.added'] },
  removePasskey: { role: 'viewer', stepUp: 'each', records: ['passkey.removed'] },
  stepUp: { role: 'viewer', records: ['session.stepped-up'] },

  listAudit: { role: 'owner', wide: true },
  exportAudit: { role: 'owner', wide: true },
  verifyAudit: { role: 'owner', wide: true },

  sealLedger: { role: 'owner', wide: true, stepUp: 'recent', records: ['ledger.sealed'] },
  checkSeals: { role: 'owner', wide: true },
  acceptRow: { role: 'owner', wide: true, stepUp: 'recent', records: ['row.accepted'] },

  showSystem: { role: 'owner', wide: true },
  showEnvironment: { role: 'owner', wide: true },
} as const satisfies Readonly<Record<string, Rule>>;

export type ActionName = keyof typeof ACTIONS;
