import { Writable } from 'node:stream';
import { expect, test } from 'vitest';
import { createLogger } from '../../src/core/runtime/log.ts';
import type { Context } from '../../src/server/context.ts';
import { startManifest } from '../../src/server/service.ts';

/** Returns the message of a start without a manifest on these networks. */
async function saidOn(...networks: Context['networks']): Promise<string> {
  let said = '';
  const destination = new Writable({
    write(chunk, _encoding, done) {
      said += chunk;
      done();
    },
  });
  const log = createLogger({ level: 'info', destination });
  const context = { config: { addressManifest: null }, networks, log } as unknown as Context;
  expect(await startManifest(context)).toBeNull();
  return said;
}

test('a start on a main network without a manifest warns of it, and on a test network it does not', async () => {
  const said = await saidOn('nile', 'mainnet');
  expect(said).toContain('no address manifest is configured: an attacker with write access to the database');
  expect(JSON.parse(said)).toMatchObject({ level: 'warn' });
  expect(await saidOn('nile', 'devnet')).toBe('');
});
