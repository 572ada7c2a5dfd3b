import type { Config } from '../../config/config.ts';
import type { KeyRing } from '../../runtime/key-ring.ts';
import { requireKeyRing } from '../../runtime/open-key-ring.ts';

/** The keys of the sandbox, which has a database of its own even where DATABASE_URL names another. */
export function openSandboxKeys(config: Config, warn?: (message: string) => void): Promise<KeyRing> {
  return requireKeyRing({ ...config, databaseUrl: null }, warn);
}
