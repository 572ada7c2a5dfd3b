import { join } from 'node:path';
import { afterEach, test, vi } from 'vitest';
import { encodeId } from '../../src/core/domain/ids.ts';
import { addressOf, txIdOf } from './explain-ledger.ts';
import { startRecording } from './golden-record.ts';
import { openGoldenShop } from './golden-shop.ts';
import { newDirectory } from './run-cli.ts';

// The commands' output is compared with the files in test/cli/golden/commands. After an intended change, run `npm run golden:record` and
// review the difference.

afterEach(() => {
  vi.useRealTimers();
});

const MASTER_KEY = 'A'.repeat(43).concat('=');
const NOBODYS = '01h455vb4pex5vsknk084sn02q';

/** Creates a shop, and a recording of the commands. */
async function openPart(part: string) {
  const shop = await openGoldenShop();
  const env = { ...shop.ledger.env, QUITTANCE_MASTER_KEY: MASTER_KEY };
  return { ...shop, ...startRecording(part, env) };
}

test('explain tells the same of every subject', async () => {
  const { both, run, finishAudited, ...shop } = await openPart('explain');
  const { paid, open } = shop;
  for (const name of ['paid', 'late', 'orphaned', 'expired', 'waiting', 'confirming', 'exact']) {
    await both(['explain', name]);
  }
  await run(['explain', encodeId('inv', paid.invoice.id), '--json']);
  await run(['explain', encodeId('inv', open.waiting.id).toUpperCase()]);
  await both(['explain', 'ambiguous']);
  await both(['explain', 'ambiguous', '--project', shop.other.projectId]);
  for (const tx of [0x18, 0x19, 0x20, 0x21, 0x25, 0x34, 0x55, 0x99]) await run(['explain', txIdOf(tx), '--json']);
  await run(['explain', txIdOf(0x22)]);
  for (const byte of [0xa2, 0xa3, 0xbb, 0xdd, 0x44]) await run(['explain', addressOf(byte), '--json']);
  await run(['explain', addressOf(0xa1)]);
  await both(['explain', txIdOf(0x17), '--project', shop.other.projectId]);
  await run(['explain', 'order-404']);
  for (const unknown of [`inv_${NOBODYS}`, 'inv_1', `0x${txIdOf(0x17)}`, 'ab'.repeat(30)]) {
    await run(['explain', unknown, '--json']);
  }
  await both(['explain', 'paid', '--project', 'prj_1']);
  await finishAudited();
});

test('transfers are listed, shown, resolved and exported as they were', async () => {
  const { both, run, finishAudited, ...shop } = await openPart('transfers');
  const { projectId } = shop.shop;
  const inShop = ['--project', projectId];
  const trf = (transfer: { id: string }) => encodeId('trf', transfer.id);
  const { short, foreign, duplicate, refunded, denied } = shop.strays;
  await both(['transfers', 'list']);
  await both(['transfers', 'list', ...inShop]);
  await both(['transfers', 'list', ...inShop, '--kind', 'all', '--all']);
  for (const filter of [['--resolved'], ['--kind', 'matched'], ['--kind', 'duplicate', '--limit', '1']]) {
    await both(['transfers', 'list', ...inShop, ...filter]);
  }
  await run(['transfers', 'list', ...inShop, '--before', trf(duplicate), '--json']);
  await run(['transfers', 'list', ...inShop, '--from', '2026-09-01T10:10:00Z', '--to', '2026-09-01', '--json']);
  for (const wrong of [
    ['--kind', 'odd'],
    ['--limit', '0'],
    ['--before', 'trf_1'],
    ['--from', 'today'],
    ['--open', '--all'],
  ]) {
    await both(['transfers', 'list', ...inShop, ...wrong]);
  }
  for (const transfer of [shop.paid.transfer, short, foreign, duplicate, refunded, denied]) {
    await both(['transfers', 'show', trf(transfer)]);
  }
  await both(['transfers', 'show', txIdOf(0x17)]);
  await both(['transfers', 'show', `trf_${NOBODYS}`]);
  await run(['transfers', 'show', 'paid']);
  const resolve = (...args: string[]) => both(['transfers', 'resolve', ...args]);
  await resolve(trf(short), '--as', 'odd');
  await run(['transfers', 'resolve', trf(short)]);
  await run(['transfers', 'refund', trf(short), '--tx', 'a transaction']);
  await run([
    'transfers',
    'resolve',
    trf(short),
    '--as',
    'fulfilled-manually',
    '--invoice',
    'waiting',
    '--note',
    'by hand',
  ]);
  await run(['transfers', 'resolve', trf(foreign), trf(duplicate), '--as', 'kept', '--by', 'bert', '--json']);
  await resolve(trf(short), '--as', 'refunded');
  await resolve(trf(shop.paid.transfer), '--as', 'refunded');
  await resolve(trf(denied), '--as', 'kept');
  await resolve(`trf_${NOBODYS}`, '--as', 'own-deposit');
  await both(['transfers', 'show', trf(short)]);
  await both(['transfers', 'list', ...inShop, '--resolved']);
  await both(['explain', 'waiting']);
  for (const direction of ['in', 'out', 'both'])
    await both(['transfers', 'export', ...inShop, '--direction', direction]);
  await run(['transfers', 'export', ...inShop, '--format', 'json', '--kind', 'unmatched']);
  await run(['transfers', 'export', ...inShop, '--from', '2026-09-02']);
  const file = join(newDirectory(), 'transfers.csv');
  await run(['transfers', 'export', ...inShop, '--format', 'odd']);
  await run(['transfers', 'export', ...inShop, '--output', file]);
  await both(['transfers', 'export', ...inShop, '--output', file, '--direction', 'both']);
  await run(['transfers', 'export', ...inShop, '--output', 'no-such-folder/transfers.csv']);
  await finishAudited();
});

test('invoices are listed, shown and exported as they were', async () => {
  const { both, run, finish, ...shop } = await openPart('invoices');
  const inShop = ['--project', shop.shop.projectId];
  const inv = encodeId('inv', shop.paid.invoice.id);
  await run(['invoice', 'list']);
  await both(['invoice', 'list', ...inShop]);
  await both(['invoice', 'list', ...inShop, '--limit', '2', '--before', inv]);
  await both(['invoice', 'list', ...inShop, '--status', 'EXPIRED', '--amount', '25.00']);
  await run(['invoice', 'list', ...inShop, '--to', '2020-01-01']);
  await both(['invoice', 'show', inv, ...inShop]);
  await both(['invoice', 'show', `inv_${NOBODYS}`, ...inShop]);
  await both(['invoice', 'export', ...inShop]);
  await run(['invoice', 'export', ...inShop, '--status', 'PAID', '--format', 'json']);
  const order = ['--external-id', 'by-hand', ...inShop];
  await both(['invoice', 'create', '--amount', '0', ...order]);
  await both(['invoice', 'create', '--amount', '25.00', '--idempotency-key', 'with space', ...order]);
  await finish();
});

test('a report tells what to book of each day, and refuses what is no period', async () => {
  const { both, run, finishAudited, ...shop } = await openPart('report');
  const { projectId } = shop.shop;
  const inShop = ['--project', projectId];
  await both(['report']);
  await both(['report', ...inShop]);
  await both(['report', ...inShop, '--csv']);
  await run(['report', ...inShop, '--from', '2026-08-20', '--to', '2026-08-31']);
  await run(['report', '--project', shop.other.projectId, '--from', '2026-09-01', '--to', '2026-09-01', '--json']);
  for (const wrong of [
    ['--from', '2026-02-30'],
    ['--to', '2026-09-01T12:00:00Z'],
    ['--from', '2026-09-02'],
    ['--from', '2025-01-01', '--to', '2026-01-02'],
  ]) {
    await both(['report', ...inShop, ...wrong]);
  }
  await both(['report', '--project', `prj_${NOBODYS}`]);
  await finishAudited();
});

test('deliveries are listed, shown and replayed, and events shown, as they were', async () => {
  const { both, run, finishAudited, ...shop } = await openPart('deliveries');
  const inShop = ['--project', shop.shop.projectId];
  const evt = ({ id }: { id: string }) => encodeId('evt', id);
  const [good, bad] = [encodeId('whe', shop.endpoints.good), encodeId('whe', shop.endpoints.bad)];
  await both(['webhook', 'list', ...inShop]);
  await both(['deliveries', 'list', ...inShop]);
  for (const status of ['pending', 'failing', 'delivered', 'dead', 'odd']) {
    await both(['deliveries', 'list', ...inShop, '--status', status]);
  }
  const { event } = shop.paid;
  const filters = [
    ...[
      ['--endpoint', bad],
      ['--type', 'invoice.paid'],
      ['--invoice', 'paid'],
      ['--event', evt(event)],
      ['--limit', '1'],
    ],
    ...[
      ['--before', evt(event)],
      ['--from', '2026-09-01T10:10:00Z'],
      ['--to', '2026-08-31'],
      ['--type', 'odd'],
    ],
    ...[
      ['--limit', '501'],
      ['--event', 'evt_1'],
      ['--endpoint', `whe_${NOBODYS}`],
      ['--invoice', 'nobodys'],
    ],
  ];
  for (const filter of filters) await run(['deliveries', 'list', ...inShop, ...filter, '--json']);
  for (const shown of [event, shop.expired.event, shop.strays.event]) await both(['deliveries', 'show', evt(shown)]);
  await run(['deliveries', 'show', evt(event), '--endpoint', bad, '--json']);
  for (const wrong of [`evt_${NOBODYS}`, 'evt_1']) await both(['deliveries', 'show', wrong]);

  const tail = (...args: string[]) => run(['events', 'tail', ...inShop, '--no-follow', ...args]);
  await tail();
  await tail('--limit', '2', '--type', 'invoice.paid,invoice.expired');
  await tail('--after', evt(event));
  await tail('--type', 'odd');
  await tail('--after', `evt_${NOBODYS}`);

  const replay = (...args: string[]) => both(['deliveries', 'replay', ...args]);
  await replay();
  await replay(evt(event), '--dry-run');
  await replay('--endpoint', bad, '--dry-run');
  await replay('--endpoint', bad, '--from', '2026-09-01', '--to', '2026-09-01', '--status', 'all', '--dry-run');
  await run(['deliveries', 'replay', evt(event), '--by', 'bert', '--json']);
  await replay('--endpoint', good, '--status', 'missing', '--type', 'transfer.duplicate');
  await replay(`evt_${NOBODYS}`);
  await replay('--endpoint', good, '--status', 'odd');
  await both(['deliveries', 'show', evt(event)]);
  await both(['webhook', 'disable', good, '--reason', 'it is moved']);
  await both(['webhook', 'enable', good]);
  await finishAudited();
});

test('requests are listed and shown', async () => {
  const { both, run, finish, ...shop } = await openPart('requests');
  const inShop = ['--project', shop.shop.projectId];
  const { made, refused, read, nobodys } = shop.requests;
  await both(['request', 'list']);
  await both(['request', 'list', ...inShop]);
  await both(['request', 'list', '--without-key']);
  await run(['request', 'list', '--without-key', ...inShop]);
  await run(['request', 'list', '--project', shop.other.projectId]);
  const key = encodeId('key', shop.key);
  for (const filter of [
    ['--limit', '1'],
    ['--before', refused],
    ['--status', '4xx'],
    ['--key', key, '--to', '2026-09-01T10:01:00Z'],
  ]) {
    await both(['request', 'list', ...inShop, ...filter]);
  }
  await run(['request', 'list', ...inShop, '--external-id', 'paid', '--json']);
  for (const wrong of [
    ['--status', '3xx'],
    ['--key', 'key_1'],
    ['--before', 'req_1'],
    ['--limit', '0'],
    ['--from', 'today'],
  ]) {
    await run(['request', 'list', ...inShop, ...wrong, '--json']);
  }
  for (const requestId of [made, refused, read, nobodys]) await both(['request', 'show', requestId]);
  await both(['request', 'show', `req_${NOBODYS}`]);
  await both(['request', 'show', 'req_1']);
  await finish();
});

test('projects, keys and addresses of a shop are shown as they were', async () => {
  const { both, run, finishAudited, ...shop } = await openPart('shop');
  const inShop = ['--project', shop.shop.projectId];
  await both(['project', 'list']);
  await both(['project', 'show', shop.shop.projectId]);
  await both(['project', 'show']);
  await both(['project', 'show', `prj_${NOBODYS}`]);
  await both(['key', 'list', ...inShop]);
  await both(['address', 'list', ...inShop]);
  await run(['address', 'list', ...inShop, '--after', '1', '--json']);
  await both(['address', 'capacity', ...inShop]);
  await both(['address', 'capacity', ...inShop, '--amount', '25']);
  await run(['address', 'capacity', ...inShop, '--amount', 'x']);
  await both(['address', 'retire', shop.exact.address, ...inShop, '--note', 'full']);
  await both(['address', 'activate', shop.retired.address, shop.exact.address, ...inShop]);
  await both(['address', 'retire', shop.theirs.address, ...inShop]);
  await both(['explain', shop.retired.address]);
  await finishAudited();
});
