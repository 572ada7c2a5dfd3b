import type { RecordedActor } from './audit-log.ts';

/** The actor in records of the service's own actions. */
export const BY_ITSELF: RecordedActor = {
  ...{ actorKind: 'service', actorId: null, actedBy: 'quittance', origin: null, requestId: null },
};
