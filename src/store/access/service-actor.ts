import type { RecordedActor } from './audit-log.ts';

/** The operator's name in the record of what the service does by itself. */
export const BY_ITSELF: RecordedActor = {
  ...{ actorKind: 'service', actorId: null, actedBy: 'quittance', origin: null, requestId: null },
};
