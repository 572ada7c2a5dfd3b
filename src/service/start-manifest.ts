import { keyMode } from '../domain/network.ts';
import { watchManifest } from '../payments/manifest/watch-manifest.ts';
import type { Loop } from '../runtime/loop.ts';
import type { Context } from './context.ts';

/** Takes the address manifest into force before anything else starts; `null` where none is set up. Errors: see `watchManifest`. */
export async function startManifest(context: Context): Promise<Loop | null> {
  const { config, db, addressGuard: guard, networks, log, now } = context;
  const settings = config.addressManifest ?? null;
  if (settings !== null) return watchManifest({ db, guard, settings, networks, log, now });
  if (networks.some((network) => keyMode(network) === 'live')) {
    log.warn(
      'no address manifest is set up: whoever can write to the database can show payers another address. See "Signed addresses" in docs/operations.md',
    );
  }
  return null;
}
