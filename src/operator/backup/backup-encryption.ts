import { bech32 } from '@scure/base';
import { AppError } from '../../domain/errors.ts';
import { say } from '../../domain/message.ts';
import { deriveKey, type MasterKey } from '../../runtime/key-ring.ts';

/** https://age-encryption.org/v1: what `age -d` opens, too. */
export const AGE_MAGIC = Buffer.from('age-encryption.org/v1\n');

/** Encrypts to public keys (`age1…`) as the bytes come, in chunks of 64 KiB; no key here opens it again. */
export async function* encryptTo(
  recipients: readonly string[],
  source: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const { Encrypter } = await import('age-encryption');
  const encrypter = new Encrypter();
  for (const recipient of recipients) encrypter.addRecipient(recipient);
  yield* await encrypter.encrypt(ReadableStream.from(source));
}

/** Throws `CONFIG_INVALID` for what is no public key of age. */
export async function checkRecipients(recipients: readonly string[]): Promise<void> {
  const { Encrypter } = await import('age-encryption');
  for (const recipient of recipients) {
    try {
      new Encrypter().addRecipient(recipient);
    } catch (error) {
      throw new AppError(
        'CONFIG_INVALID',
        say`${recipient.slice(0, 20)}… is no public key of age: give the line "age1…" that "${{ command: 'backup keygen' }}" or "age-keygen" showed`,
        { cause: error },
      );
    }
  }
}

/** Whether all of them are secret keys of age. */
export async function areIdentities(identities: readonly string[]): Promise<boolean> {
  const { Decrypter } = await import('age-encryption');
  try {
    for (const identity of identities) new Decrypter().addIdentity(identity);
    return true;
  } catch {
    // The error shows the key, so it is dropped.
    return false;
  }
}

/**
 * Decrypts a source that is encrypted to the public key of one of `identities` (`AGE-SECRET-KEY-1…`), as the bytes come. It yields no
 * changed byte, and a missing end is an error. Errors: those of `file`, of which `refused` is for a source that no identity fits.
 */
export async function* decryptWith(
  identities: readonly string[],
  source: AsyncIterable<Uint8Array>,
  file: { refused(cause: Error): AppError; damaged(reason: string): AppError },
): AsyncGenerator<Uint8Array> {
  const { Decrypter } = await import('age-encryption');
  const decrypter = new Decrypter();
  for (const identity of identities) decrypter.addIdentity(identity);
  let failed: unknown;
  try {
    // An error of the source is thrown as it is, and not taken for a wrong key.
    const watched = async function* () {
      try {
        yield* source;
      } catch (error) {
        failed = error;
        throw error;
      }
    };
    yield* await decrypter.decrypt(ReadableStream.from(watched()));
  } catch (error) {
    if (failed !== undefined) throw failed;
    if (error instanceof Error && error.message.startsWith('no identity matched')) {
      throw file.refused(error);
    }
    throw file.damaged('it does not decrypt as a whole');
  }
}

/** Our recipients take some hundred bytes each, those of quantum-safe keys two thousand. */
export const MAX_AGE_HEADER_BYTES = 64 * 1024;

/** To how many keys a file is encrypted, by its first bytes; `null`: they are no whole header. */
export function countRecipients(start: Buffer): number | null {
  const end = start.indexOf('\n--- ');
  if (end === -1) return null;
  return start.toString('latin1', 0, end).split('\n-> ').length - 1;
}

export type AgePair = { identity: string; recipient: string };

/** The pair of age that a master key stands for: who has the key opens what is encrypted to it. */
export async function pairOfMasterKey(key: MasterKey): Promise<AgePair> {
  const { identityToRecipient } = await import('age-encryption');
  const identity = identityOf(key);
  return { identity, recipient: await identityToRecipient(identity) };
}

/** The secret key of that pair, `AGE-SECRET-KEY-1…`. */
export function identityOf(key: MasterKey): string {
  const secret = deriveKey(key, { purpose: 'quittance backup encryption 1', salt: '' });
  return bech32.encodeFromBytes('AGE-SECRET-KEY-', secret).toUpperCase();
}

/** A new pair, in memory alone. */
export async function createAgePair(): Promise<AgePair> {
  const { generateX25519Identity, identityToRecipient } = await import('age-encryption');
  const identity = await generateX25519Identity();
  return { identity, recipient: await identityToRecipient(identity) };
}

/** A new pair: the public key, and the text of a file with the secret one, as `age-keygen` writes it. */
export async function createAgeKey(createdAt: string): Promise<{ recipient: string; file: string }> {
  const { identity, recipient } = await createAgePair();
  return { recipient, file: `# created: ${createdAt}\n# public key: ${recipient}\n${identity}\n` };
}
