import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { AppError } from '../../domain/errors.ts';
import { signHead } from '../../domain/manifest/manifest-signature.ts';
import { say, type Text } from '../../domain/message.ts';
import { quoteWhole } from '../input/clip.ts';

export type SigningKeyView = { file: string; publicKey: string };

/** A passphrase is all that stands between a copy of the file and the addresses. */
const MIN_PASSPHRASE = 12;
const SEED_BYTES = 32;

/** Makes an Ed25519 key, encrypted by a passphrase with scrypt in the form of age. Errors: `CONFLICT`, `INVALID_ARGUMENT`. */
export async function makeSigningKey({
  path,
  passphrase,
}: {
  path: string;
  passphrase: string;
}): Promise<SigningKeyView> {
  if (passphrase.length < MIN_PASSPHRASE) {
    throw new AppError(
      'INVALID_ARGUMENT',
      `the passphrase has ${passphrase.length} characters: take ${MIN_PASSPHRASE} or more`,
    );
  }
  const { Encrypter, armor } = await import('age-encryption');
  const seed = randomBytes(SEED_BYTES);
  const publicKey = publicKeyOf(seed);
  const encrypter = new Encrypter();
  encrypter.setPassphrase(passphrase);
  const sealed = armor.encode(await encrypter.encrypt(seed));
  const file = `# Signs address manifests of Quittance. Keep it where the service is not.\n# public key: ${publicKey}\n${sealed}`;
  await writeFile(path, file, { flag: 'wx', mode: 0o600, flush: true }).catch((error: NodeJS.ErrnoException) => {
    const code = error.code === 'EEXIST' ? 'CONFLICT' : 'INVALID_ARGUMENT';
    throw new AppError(code, `${quoteWhole(path)} cannot be made (${error.code}): give another name or place`, {
      cause: error,
    });
  });
  return { file: path, publicKey };
}

/** The 32 bytes of a key that `makeSigningKey` made. Error: `INVALID_ARGUMENT`. */
export async function openSigningKey({ path, passphrase }: { path: string; passphrase: string }): Promise<Uint8Array> {
  const wrong = (reason: Text, cause?: unknown) =>
    new AppError('INVALID_ARGUMENT', say`${{ field: 'key' }} ${quoteWhole(path)} ${reason}`, { cause });
  const text = await readFile(path, 'latin1').catch((error: NodeJS.ErrnoException) => {
    throw wrong(`cannot be read (${error.code})`, error);
  });
  const sealed = /-----BEGIN AGE ENCRYPTED FILE-----[\s\S]+-----END AGE ENCRYPTED FILE-----/.exec(text)?.[0];
  if (sealed === undefined) throw wrong(say`is no key that "${{ command: 'manifest key' }}" made`);
  const { Decrypter, armor } = await import('age-encryption');
  const decrypter = new Decrypter();
  decrypter.addPassphrase(passphrase);
  const seed = await decrypter.decrypt(armor.decode(sealed)).catch((error: unknown) => {
    throw wrong('does not open: the passphrase is wrong, or the file is damaged', error);
  });
  if (seed.length !== SEED_BYTES) throw wrong('holds no Ed25519 key');
  return seed;
}

function publicKeyOf(seed: Uint8Array): string {
  return signHead('', seed).key;
}
