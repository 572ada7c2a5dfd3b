import { AppError, notFound } from '../../../core/domain/errors.ts';
import { encodeId } from '../../../core/domain/ids.ts';
import { say, type Text } from '../../../core/domain/message.ts';
import type { UnixMs } from '../../../core/domain/time.ts';
import { DataDirError } from '../../../core/runtime/instance-lock.ts';
import { createMasterKey, type KeyRing, type KeySource } from '../../../core/runtime/key-ring.ts';
import {
  type KeySettings,
  lockKeyFile,
  openKeyRing,
  requireKeyRing,
  writeKeyFile,
} from '../../../core/runtime/open-key-ring.ts';
import { Type } from '../../../core/runtime/type.ts';
import { countTotpByKey } from '../../../core/store/access/people.ts';
import { findCurrentReceiptKey, reencryptReceiptKey } from '../../../core/store/access/receipt-keys.ts';
import type { Database, Sql } from '../../../core/store/db/database.ts';
import { findLedgerIdentity } from '../../../core/store/db/ledger-identity.ts';
import { mayReseal, SEALED_ROWS } from '../../../core/store/db/sealed-rows.ts';
import { createSealer } from '../../../core/store/db/seals.ts';
import { countTargetsByKey } from '../../../core/store/outbox/notify-channels.ts';
import {
  countSecretsByKey,
  lockSecretsUnderOtherKeys,
  reencryptInBatches,
  type StoredSecret,
  stopEncryption,
} from '../../../core/store/outbox/webhook-secrets.ts';
import { reencryptEndpointSecret } from '../../../core/webhooks/endpoint-secrets.ts';
import { reencryptTargets } from '../../notify/channel-target.ts';
import type { Actor } from '../actor.ts';
import { columnsText, fieldsText } from '../command-words.ts';
import { describeMissingKeys, type KeyDeps, type MissingDeps } from '../encryption-keys.ts';
import { choice, list, maybe, part, type Shown, schemaOf, text, whole, yes } from '../fields.ts';
import { scanRows } from '../ledger/seal-ledger.ts';
import { localOperation, operation } from '../operation.ts';
import { recordAction } from '../record-actions.ts';
import { reencryptTotp } from './totp.ts';

/**
 * `signing` and `ended` count the webhook and authenticator app secrets encrypted with the key: those in use, and those no longer in use.
 * For an earlier key, `sealsRows` is whether any row is still sealed with it. For other keys it's `null`, because most rows name these
 * keys.
 */
const shown = {
  keyId: text,
  use: choice(['seals', 'opens', 'missing']),
  signing: whole,
  ended: whole,
  sealsReceiptKey: yes,
  sealsRows: maybe(yes),
  canBeDropped: yes,
};
export type MasterKeyView = Shown<typeof shown>;

const yesNo = (is: boolean) => (is ? 'yes' : 'no');

/** `missing` says what to do about keys that aren't configured here. */
export const showMasterKeys = operation({
  action: 'showMasterKeys',
  summary: "List the service's master keys by id, and how many secrets each key encrypts",
  route: 'GET /master-keys',
  command: 'master-key status',
  does: 'list the master keys, where they come from, and how many secrets each key encrypts',
  input: Type.Object({}),
  // `source` is the variable, the file's path, or `none`.
  output: schemaOf({ source: text, keys: list(part(shown)) }),
  run: async ({ db, now, config, note }: KeyDeps) => {
    const keyRing = await openKeyRing(config, { mayCreate: false, warn: note });
    return { ...(await findMasterKeys({ db, now, keyRing })), isEmbedded: config.databaseUrl === null };
  },
  print: ({ view, missing, isEmbedded }) => {
    const keys = columnsText(view.keys, [
      ['KEY', 'keyId'],
      ['USE', 'use'],
      ['SIGNING SECRETS', 'signing'],
      ['ENDED', 'ended'],
      ['RECEIPTS', ({ sealsReceiptKey }) => yesNo(sealsReceiptKey)],
      ['ROWS', ({ sealsRows }) => (sealsRows === null ? '' : yesNo(sealsRows))],
      ['CAN BE REMOVED', ({ canBeDropped }) => yesNo(canBeDropped)],
    ]);
    return {
      text: [fieldsText(view, [['keys from', 'source']]), keys],
      next: missing ?? (view.source === 'none' && NO_KEY[isEmbedded ? 'embedded' : 'external']),
      hasFailed: view.keys.some(({ use }) => use === 'missing'),
    };
  },
});

const NO_KEY = {
  external: 'QUITTANCE_MASTER_KEY is not set; generate a key with "openssl rand -base64 32"',
  embedded: 'no key yet: Quittance creates a key when it encrypts the first secret',
};

/** Lists the master keys for an open key ring. */
export async function findMasterKeys(deps: MissingDeps) {
  const { db, now, keyRing } = deps;
  const ofWebhooks = await countSecretsByKey(db, now());
  const ofPeople = await countTotpByKey(db);
  const ofChannels = await countTargetsByKey(db);
  const ofReceipts = (await findCurrentReceiptKey(db))?.masterKeyId;
  const present = (keyRing?.keys() ?? []).map(({ id }) => id);
  const ofRows = await findKeysOfRows(db, present.slice(1));
  const toView = (keyId: string, use: MasterKeyView['use']): MasterKeyView => {
    const { total, signing: ofHooks } = ofWebhooks.get(keyId) ?? { total: 0, signing: 0 };
    const signing = ofHooks + (ofPeople.get(keyId) ?? 0) + (ofChannels.get(keyId) ?? 0);
    const sealsReceiptKey = keyId === ofReceipts;
    const sealsRows = use === 'opens' ? ofRows.has(keyId) : null;
    const canBeDropped = use === 'opens' && signing === 0 && !sealsReceiptKey && sealsRows === false;
    return { keyId, use, signing, ended: total - ofHooks, sealsReceiptKey, sealsRows, canBeDropped };
  };
  // Ended secrets no longer sign anything, so a key isn't kept just for them.
  const needed = new Set([...ofWebhooks].flatMap(([keyId, { signing }]) => (signing > 0 ? [keyId] : [])));
  for (const keyId of [...ofPeople.keys(), ...ofChannels.keys()]) needed.add(keyId);
  if (ofReceipts !== undefined) needed.add(ofReceipts);
  const missing = [...needed].filter((keyId) => !present.includes(keyId));
  const keys = [
    ...present.map((keyId, index) => toView(keyId, index === 0 ? 'seals' : 'opens')),
    ...missing.map((keyId) => toView(keyId, 'missing')),
  ];
  const source = keyRing === null ? 'none' : nameSource(keyRing.source);
  return { view: { source, keys }, missing: await describeMissingKeys(deps) };
}

/** Returns the variable's name, or the file's path. */
function nameSource(source: KeySource): string {
  return source.kind === 'file' ? source.path : 'QUITTANCE_MASTER_KEY';
}

type RotatedMasterKeyView = Awaited<ReturnType<typeof reencrypt>>;

/** `note` receives progress, and a warning if others can read the key file. */
type RotateDeps = { db: Database; now(): UnixMs; config: KeySettings; note(message: string): void };

/**
 * Encrypts every secret and seals every row with a new key. With a key file, adds the key and removes the old one, unless it's needed for
 * rows that remain. With QUITTANCE_MASTER_KEY, which only the operator changes, uses its first key. An interrupted run can simply be
 * repeated. Throws `NOT_FOUND` or `CONFLICT`.
 */
export async function rotateMasterKey(deps: RotateDeps, actor: Actor): Promise<RotatedMasterKeyView> {
  const { config } = deps;
  if (config.masterKeys === null && config.databaseUrl === null) {
    const lock = await lockAlone(config.dataDir);
    return rotateFile(deps, actor).finally(() => lock.release());
  }
  return reencrypt(deps, actor, await requireKeyRing(config), { isNew: false });
}

export const rotateMasterKeyOperation = localOperation({
  action: 'rotateMasterKey',
  command: 'master-key rotate',
  does: 'encrypt and seal everything with a new key, or with the first key in QUITTANCE_MASTER_KEY, while services keep running',
  // Only the owner may give rows another MAC.
  asOwner: true,
  input: Type.Object({}),
  run: (deps: RotateDeps, actor) => rotateMasterKey(deps, actor),
  print: (view) => {
    const { isReceiptKeyLost, lostEndpoints, lostPeople = [], lostChannels = [] } = view;
    const lost = [
      ...lostEndpoints,
      ...(isReceiptKeyLost ? ['the receipt signing key'] : []),
      ...lostPeople,
      ...lostChannels,
    ];
    return {
      text: fieldsText(view, [
        ['keys from', 'source'],
        ['key', ({ keyId, isNew }) => `${keyId}${isNew ? ' (new)' : ''}`],
        ['secrets re-encrypted', 'resealed'],
        ['rows resealed', 'rows'],
        ['removed', ({ dropped }) => dropped.join(', ') || null],
        ['can be removed', ({ droppable }) => droppable.join(', ') || null],
        ['needed for rows', ({ needed }) => needed.map((key) => `${key.keyId} (${key.rows})`).join(', ') || null],
        ['cannot be opened', () => lost.join(', ') || null],
      ]),
      next: nextOf(view),
      hasFailed: lost.length > 0,
    };
  },
});

function nextOf({ source, isNew, droppable, needed, ...lost }: RotatedMasterKeyView): Text | null {
  if (lost.lostEndpoints.length > 0) {
    return say`no configured key decrypts the secrets for these endpoints: add their key or, if it is lost permanently, give each endpoint a new secret with "${{ command: 'webhook rotate', input: { isKeyLost: true } }}"`;
  }
  if (lost.isReceiptKeyLost) {
    return say`no configured key decrypts the receipt signing key: add its key or, if it is lost permanently, create a new signing key with "${{ command: 'receipt rotate', input: { isKeyLost: true } }}"`;
  }
  if (lost.lostPeople !== undefined) {
    return say`no configured key decrypts the sign-in secrets for these users: add their key or, if it is lost permanently, reset their sign-in with "${{ command: 'user reset' }}"`;
  }
  if (lost.lostChannels !== undefined) {
    return say`no configured key decrypts the targets for these notification channels: add their key or, if it is lost permanently, remove each with "${{ command: 'notify remove' }}" and add it again`;
  }
  if (needed.length > 0) {
    return source === 'QUITTANCE_MASTER_KEY'
      ? 'rows still need the previous key, and only the table owner can reseal them: run this again with DATABASE_OWNER_URL'
      : 'rows still need the previous key, and only the table owner can reseal them: stop the service, run this again, and start the service';
  }
  if (droppable.length > 0) {
    return 'when every process lists this key first, run this again, and then remove the other keys from QUITTANCE_MASTER_KEY';
  }
  if (source === 'QUITTANCE_MASTER_KEY') return null;
  return isNew
    ? 'earlier database backups need the previous key file; back up the database and the key file again'
    : 'an interrupted rotation is now finished; to rotate to a new key, run this again';
}

async function lockAlone(dataDir: string) {
  try {
    return await lockKeyFile(dataDir);
  } catch (error) {
    if (!(error instanceof DataDirError && error.code === 'DATA_DIR_IN_USE')) throw error;
    throw new AppError('CONFLICT', 'another command is already rotating the master key: wait until it has finished', {
      cause: error,
    });
  }
}

/** If the file has several keys, an earlier rotation was interrupted or left rows behind. This finishes it. */
async function rotateFile(deps: RotateDeps, actor: Actor): Promise<RotatedMasterKeyView> {
  const { config, note } = deps;
  const ring = await openKeyRing(config, { mayCreate: false, warn: note });
  if (ring === null || ring.source.kind !== 'file')
    throw notFound`there is no master key in ${config.dataDir}: for details, run "${{ command: 'master-key status' }}"`;
  const { path } = ring.source;
  const isNew = ring.keys().length === 1;
  if (isNew) await writeKeyFile(path, [createMasterKey(), ...ring.keys()]);
  await ring.reload();
  const view = await reencrypt(deps, actor, ring, { isNew });
  if (view.dropped.length > 0) {
    await writeKeyFile(
      path,
      ring.keys().filter(({ id }) => !view.dropped.includes(id)),
    );
  }
  return view;
}

/**
 * `rows` is the number of rows that were sealed again. Earlier keys were `dropped` from the file, are `droppable` from the variable, or are
 * still `needed` for rows that they sealed. `lostPeople` contains the logins of people whose authenticator secret no key decrypts. It's
 * absent if there are none.
 */
async function reencrypt({ db, now, note }: RotateDeps, actor: Actor, ring: KeyRing, { isNew }: { isNew: boolean }) {
  const { resealed, lostEndpoints } = await reencryptSecrets(db, ring, now());
  const receiptKey = await reencryptReceiptKey(db, ring);
  const totp = await reencryptTotp(db, ring);
  const targets = await reencryptTargets(db, ring);
  const rows = await resealRows(db, ring, note);
  const former = ring.keys().slice(1);
  const spare = former.map(({ id }) => id).filter((id) => !rows.left.has(id));
  const isFile = ring.source.kind === 'file';
  const keys = { dropped: isFile ? spare : [], droppable: isFile ? [] : spare };
  const keyId = ring.current().id;
  const sealed = resealed + (receiptKey === 'resealed' ? 1 : 0) + totp.resealed + targets.resealed;
  const detail = { isNew, resealed: sealed, rows: rows.resealed, ...keys };
  await db.transaction((tx) => recordAction(tx, actor, now(), 'master-key.rotated', { subject: keyId, detail }));
  return {
    ...{ source: nameSource(ring.source), keyId, ...detail },
    needed: [...rows.left].map(([id, count]) => ({ keyId: id, rows: count })),
    lostEndpoints: lostEndpoints.map((id) => encodeId('whe', id)),
    isReceiptKeyLost: receiptKey === 'lost',
    ...(totp.lost.length === 0 ? {} : { lostPeople: totp.lost.map(({ login }) => login) }),
    ...(targets.lost.length === 0 ? {} : { lostChannels: targets.lost.map(({ id }) => encodeId('chn', id)) }),
  };
}

/**
 * Encrypts every secret with the ring's current key, in batches of 500. When this returns, the other keys in the ring no longer protect any
 * secret that they can decrypt, and no process with the same keys continues to encrypt with them. It may be interrupted and repeated at any
 * time, even while services are running. `lostEndpoints` contains the ids of endpoints with a secret that should still sign, but that no key
 * decrypts.
 */
export async function reencryptSecrets(db: Database, ring: KeyRing, now: UnixMs) {
  const lock = (tx: Sql, after: string) => lockSecretsUnderOtherKeys(tx, ring.current().id, after);
  const reencryptRow = (tx: Sql, row: StoredSecret) => reencryptEndpointSecret(tx, ring, row);
  const before = await reencryptInBatches((work) => db.transaction(work), lock, reencryptRow);
  const rest = await db.transaction(async (tx) => {
    // This waits for processes that began to encrypt before the key became the current one.
    await stopEncryption(tx);
    // Finds the few secrets that were added in the meantime, and the secrets that can't be decrypted.
    return reencryptInBatches((work) => work(tx), lock, reencryptRow);
  });
  const lost = rest.lost.filter(({ endsAt }) => endsAt === null || endsAt > now);
  const lostEndpoints = [...new Set(lost.map(({ endpointId }) => endpointId))];
  return { resealed: before.resealed + rest.resealed, lostEndpoints };
}

export const operations = [showMasterKeys, rotateMasterKeyOperation];

/** `left` counts, for each earlier key, the rows that are still sealed with it because this database user may not change them. */
type Resealed = { resealed: number; left: Map<string, number> };

/**
 * Seals rows again with the ring's current key if another of its keys sealed them. Rows that were changed or have no seal are left alone.
 */
async function resealRows(db: Sql, ring: KeyRing, onProgress: (text: string) => void): Promise<Resealed> {
  const ledger = await findLedgerIdentity(db);
  if (ledger === null) return { resealed: 0, left: new Map() };
  const sealer = createSealer(ring, ledger.id);
  const [isAllowed, current] = [await mayReseal(db), sealer.keyId()];
  const walked = await scanRows(
    { db, sealer, onProgress },
    ({ problem, keyId }) => isAllowed && problem === null && keyId !== current,
  );
  const resealed = walked.tallies.reduce((sum, tally) => sum + tally.resealed, 0);
  return { resealed, left: walked.formerKeys };
}

/** Returns the master keys that any row names. Reads all rows, 50,000 at a time, until every key has been found. */
async function findKeysOfRows(db: Sql, keyIds: readonly string[]): Promise<Set<string>> {
  const met = new Set<string>();
  for (const source of SEALED_ROWS) {
    for (let after: string | undefined = source.start; after !== undefined && met.size < keyIds.length; ) {
      const counts = await source.count(db, after);
      for (const { keyId, rows } of counts) if (keyId !== null && rows > 0 && keyIds.includes(keyId)) met.add(keyId);
      after = counts[0]?.last;
    }
  }
  return met;
}
