import type { RecordedAction } from '../store/access/audit-log.ts';
import type { Role } from './actor.ts';

/**
 * What a use case takes: the least role, whether the second factor is asked for again, and what the audit log calls it when it changes
 * something. This table is the only place that decides who may do what.
 */
export type Rule = { role: Role; stepUp?: true; records?: readonly RecordedAction[] };

/** Every use case, by its name. */
export const ACTIONS = {
  listAddresses: { role: 'viewer' },
  showCapacity: { role: 'viewer' },
  showCapacityOfAmount: { role: 'viewer' },
  addAddresses: { role: 'owner', stepUp: true, records: ['address.added'] },
  deriveAddresses: { role: 'owner', stepUp: true, records: ['address.derived'] },
  findDerivationKey: { role: 'owner' },
  limitDerivation: { role: 'owner', stepUp: true, records: ['project.changed'] },
  retireAddresses: { role: 'operator', records: ['address.retired'] },
  activateAddresses: { role: 'owner', stepUp: true, records: ['address.activated'] },

  listProjects: { role: 'viewer' },
  showProject: { role: 'viewer' },
  createProject: { role: 'owner', records: ['project.created'] },
  updateProject: { role: 'owner', stepUp: true, records: ['project.changed'] },

  listKeys: { role: 'owner' },
  createKey: { role: 'owner', stepUp: true, records: ['key.created'] },
  revokeKey: { role: 'owner', records: ['key.revoked'] },
  showMasterKeys: { role: 'owner' },
  rotateMasterKey: { role: 'owner', stepUp: true, records: ['master-key.rotated'] },
  rotateReceiptKey: { role: 'owner', stepUp: true, records: ['receipt-key.rotated'] },

  listEndpoints: { role: 'viewer' },
  addEndpoint: { role: 'owner', stepUp: true, records: ['webhook.added'] },
  updateEndpoint: { role: 'owner', stepUp: true, records: ['webhook.changed'] },
  enableEndpoint: { role: 'operator', records: ['webhook.enabled'] },
  disableEndpoint: { role: 'owner', records: ['webhook.disabled'] },
  rotateSecret: { role: 'owner', stepUp: true, records: ['webhook.rotated'] },
  testEndpoint: { role: 'operator', records: ['webhook.tested'] },

  listDeliveries: { role: 'viewer' },
  showDelivery: { role: 'viewer' },
  tailEvents: { role: 'viewer' },
  replayPeriod: { role: 'operator', records: ['deliveries.replayed'] },
  replayEvents: { role: 'operator', records: ['deliveries.replayed'] },

  listTransfers: { role: 'viewer' },
  showTransfers: { role: 'viewer' },
  exportTransfers: { role: 'viewer' },
  resolveTransfers: { role: 'operator', records: ['transfer.resolved'] },

  sumCauses: { role: 'viewer' },

  explainSubject: { role: 'viewer' },

  listInvoices: { role: 'viewer' },
  showInvoice: { role: 'viewer' },
  exportInvoices: { role: 'viewer' },
  createInvoiceByHand: { role: 'operator', records: ['invoice.created'] },

  showToday: { role: 'viewer' },

  showStatus: { role: 'viewer' },
  listProducers: { role: 'viewer' },
  makeCheckpoint: { role: 'viewer' },
  checkCheckpoint: { role: 'viewer' },
  reconcileNow: { role: 'viewer' },
  verifyRange: { role: 'viewer' },
  acceptProducers: { role: 'owner', stepUp: true, records: ['producers.accepted'] },
  acknowledgeAlarms: { role: 'operator', records: ['alarm.acknowledged'] },
  passBlock: { role: 'owner', stepUp: true, records: ['block.passed'] },
  rescanRange: { role: 'operator', records: ['chain.rescanned'] },
  repairRange: { role: 'owner', stepUp: true, records: ['chain.repaired'] },
  resumeChain: { role: 'owner', stepUp: true, records: ['chain.resumed'] },

  checkSchema: { role: 'owner' },
  makeKey: { role: 'owner' },
  verifyBackup: { role: 'owner' },
  createBackup: { role: 'owner', stepUp: true, records: ['backup.created'] },
  restoreBackup: { role: 'owner', stepUp: true, records: ['backup.restored'] },
  acceptRestore: { role: 'owner', stepUp: true, records: ['backup.accepted'] },

  listAudit: { role: 'owner' },
  exportAudit: { role: 'owner' },
  verifyAudit: { role: 'owner' },
} as const satisfies Readonly<Record<string, Rule>>;

export type ActionName = keyof typeof ACTIONS;
