import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { expect, test } from 'vitest';
import { verifyAddress } from '../../packages/sdk/src/address/verify-address.ts';
import { headOf, pathOf } from '../../src/core/domain/manifest/manifest-head.ts';
import { parseSshSignature, signHead } from '../../src/core/domain/manifest/manifest-signature.ts';
import { checkReceipt } from '../../src/core/domain/receipt/receipt.ts';
import { nativeSha256 } from '../../src/core/payments/manifest/read-installed.ts';
import { startGuardedService } from '../manifest/guarded-service.ts';
import { SSH_KEY, SSH_SIGNATURE, TOKEN_KEY, TOKEN_SIGNATURE, VECTOR, VECTOR_HEAD } from '../manifest/vector.ts';
import { createInvoice, readInvoice, untilStatus } from '../support/service.ts';

const MAX_GZIP_BYTES = 1536;
const KEYS = [1, 2].map((byte) => new Uint8Array(32).fill(byte));
const projectId = 'prj_01j9zk7v5rfq4bt4n9q1v7h3ce';
const address = 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH';
const head = headOf(VECTOR, nativeSha256);
const signatures = KEYS.map((key) => signHead(head.text, key));
const [one = '', two = ''] = signatures.map(({ key }) => key);
const proof = { head: head.text, signatures, network: 'mainnet', projectId, path: pathOf(head.tree, 1) };

test('it takes at most 1.5 KB, minified and compressed', async () => {
  const built = await build({
    entryPoints: [join(import.meta.dirname, '../../packages/sdk/src/address/verify-address.ts')],
    ...{ bundle: true, write: false, target: 'es2022', format: 'esm', minify: true, platform: 'neutral' },
  });
  const size = gzipSync(built.outputFiles[0]?.text ?? '', { level: 9 }).length;
  console.info(`@quittance/sdk/address: ${size} bytes gzip`);
  expect(size).toBeLessThanOrEqual(MAX_GZIP_BYTES);
});

test('an address that the pinned keys vouch for is told from all else', async () => {
  const payment = { address, addressProof: proof };
  expect(await verifyAddress(payment, { keys: [one], projectId })).toEqual({
    ...{ vouched: true, serial: 1, notAfter: VECTOR.notAfter },
  });
  expect(await verifyAddress(payment, { keys: [one, two], needed: 2, projectId })).toMatchObject({ vouched: true });
  const reasons = await Promise.all(
    [
      [{ address }, {}],
      [payment, { projectId: 'prj_01j9zk7v5rfq4bt4n9q1v7h3cf' }],
      [payment, { network: 'nile' as const }],
      [payment, { keys: [SSH_KEY] }],
      [payment, { keys: [one, one], needed: 2 }],
      [{ address, addressProof: { ...proof, head: head.text.replace('"serial":1', '"serial":9') } }, {}],
      [
        { address, addressProof: { ...proof, signatures: signatures.map((each) => ({ ...each, form: 'sshsig' })) } },
        {},
      ],
      [{ address: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', addressProof: proof }, {}],
      [{ address, addressProof: { ...proof, path: [] } }, {}],
      [{ address, addressProof: { ...proof, path: proof.path.toReversed() } }, {}],
      [payment, { minSerial: 2 }],
    ].map(([given, pinned]) => verifyAddress(given as never, { keys: [one], projectId, ...(pinned as object) })),
  );
  expect(reasons.map((check) => (check.vouched ? 'vouched' : check.reason))).toEqual([
    'NO_PROOF',
    ...['OTHER_PROJECT', 'OTHER_PROJECT'],
    ...['TOO_FEW_SIGNATURES', 'TOO_FEW_SIGNATURES', 'TOO_FEW_SIGNATURES', 'TOO_FEW_SIGNATURES'],
    ...['OTHER_ADDRESS', 'OTHER_ADDRESS', 'OTHER_ADDRESS'],
    'OLD_MANIFEST',
  ]);
});

test('a signature of ssh-keygen counts, by the key as the .pub file has it', async () => {
  const parsed = parseSshSignature(SSH_SIGNATURE);
  if (parsed.kind === 'invalid') throw new Error(parsed.reason);
  const addressProof = { ...proof, head: VECTOR_HEAD, signatures: [parsed.signature] };
  expect(await verifyAddress({ address, addressProof }, { keys: [SSH_KEY], projectId })).toMatchObject({
    vouched: true,
  });
});

test('a signature of a hardware token counts, if somebody touched it', async () => {
  const parsed = parseSshSignature(TOKEN_SIGNATURE);
  if (parsed.kind === 'invalid') throw new Error(parsed.reason);
  const { signature } = parsed;
  const check = (signatures: readonly (typeof signature)[]) =>
    verifyAddress(
      { address, addressProof: { ...proof, head: VECTOR_HEAD, signatures } },
      { keys: [TOKEN_KEY], projectId },
    );
  expect(await check([signature])).toMatchObject({ vouched: true });
  const untouched = Buffer.from(signature.value, 'base64');
  untouched[64] = 0;
  expect(await check([{ ...signature, value: untouched.toString('base64') }])).toMatchObject({ vouched: false });
  expect(await check([{ ...signature, form: 'sshsig' }])).toMatchObject({ vouched: false });
});

test('the API and the checkout link carry the proof of a running service', async () => {
  const service = await startGuardedService();
  const { body } = await createInvoice(service);
  const { payment } = (await readInvoice(service, body.invoiceId)).body;
  const pinned = { ...service.pinned, projectId: service.project.projectId, network: 'devnet' as const };
  expect(await verifyAddress(payment, pinned)).toMatchObject({ vouched: true, serial: 1 });
  const link = await fetch(`${body.checkoutUrl}/address-proof.json`);
  expect(await link.json()).toEqual({ address: payment.address, addressProof: payment.addressProof });
  expect(await (await fetch(body.checkoutUrl)).text()).toContain('/address-proof.json"');

  await service.payer.transfer({
    ...{ contract: service.devnet.usdtContract, to: payment.address },
    amountMicro: BigInt(payment.payableAmount.replace('.', '')),
  });
  service.devnet.mineUntilSolid();
  await untilStatus(service, body.invoiceId, 'PAID');
  const file = await (await fetch(`${body.checkoutUrl}/receipt.json`)).text();
  const { receipt, addressProof } = JSON.parse(file);
  expect(await verifyAddress({ address: receipt.to, addressProof }, pinned)).toMatchObject({ vouched: true });
  expect(checkReceipt(Buffer.from(file))).toMatchObject({ kind: 'intact' });
  expect(checkReceipt(Buffer.from(file.replace('"addressProof": {', '"addressProof": {"head": "", ')))).toMatchObject({
    kind: 'unreadable',
  });
});
