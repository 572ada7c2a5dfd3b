import { formatApiKey } from '../../src/core/domain/api-key.ts';

/** A key in the service's format that the service doesn't know. */
export const SDK_KEY = formatApiKey('devnet', '01980000-0000-7000-8000-000000000000', new Uint8Array(32));
