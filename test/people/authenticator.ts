import { createHash, createSign, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';

/** Deviations from a well-behaved authenticator. */
type Odd = {
  origin?: string;
  challenge?: string;
  counter?: number;
  isVerified?: boolean;
  rpId?: string;
  key?: KeyObject;
  type?: string;
};

/** A test's security key: it creates a passkey (ES256) and signs with it, according to WebAuthn Level 3. */
export function createAuthenticator(origin: string) {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const id = randomBytes(32);
  let counter = 0;

  const clientData = (type: string, challenge: string, odd: Odd) =>
    Buffer.from(
      JSON.stringify({ type: odd.type ?? type, challenge: odd.challenge ?? challenge, origin: odd.origin ?? origin }),
    );

  /** User present, user verified, and any attested data. */
  const authenticatorData = (odd: Odd, attested: Buffer = Buffer.alloc(0)) => {
    counter = odd.counter ?? counter + 1;
    const flags = 0x01 | (odd.isVerified === false ? 0 : 0x04) | (attested.length > 0 ? 0x40 : 0);
    const count = Buffer.alloc(4);
    count.writeUInt32BE(counter);
    const rpIdHash = createHash('sha256')
      .update(odd.rpId ?? new URL(origin).hostname)
      .digest();
    return Buffer.concat([rpIdHash, Buffer.from([flags]), count, attested]);
  };

  return {
    id: id.toString('base64url'),
    privateKey,
    /** Answers `navigator.credentials.create`. */
    create: ({ challenge }: { challenge: string }, odd: Odd = {}) => {
      const attested = Buffer.concat([Buffer.alloc(16), Buffer.from([0, id.length]), id, coseKey(publicKey)]);
      const authData = authenticatorData({ counter: 0, ...odd }, attested);
      const attestationObject = Buffer.concat([
        ...[Buffer.from([0xa3]), text('fmt'), text('none'), text('attStmt'), Buffer.from([0xa0]), text('authData')],
        ...[Buffer.from([0x58, authData.length]), authData],
      ]);
      return {
        ...{ id: id.toString('base64url'), rawId: id.toString('base64url'), type: 'public-key' },
        clientExtensionResults: {},
        response: {
          clientDataJSON: clientData('webauthn.create', challenge, odd).toString('base64url'),
          attestationObject: attestationObject.toString('base64url'),
          transports: ['usb', 'nfc'],
        },
      };
    },
    /** Answers `navigator.credentials.get`. */
    sign: ({ challenge }: { challenge: string }, odd: Odd = {}) => {
      const data = authenticatorData(odd);
      const client = clientData('webauthn.get', challenge, odd);
      const signed = Buffer.concat([data, createHash('sha256').update(client).digest()]);
      return {
        ...{ id: id.toString('base64url'), rawId: id.toString('base64url'), type: 'public-key' },
        clientExtensionResults: {},
        response: {
          clientDataJSON: client.toString('base64url'),
          authenticatorData: data.toString('base64url'),
          signature: createSign('sha256')
            .update(signed)
            .sign(odd.key ?? privateKey)
            .toString('base64url'),
        },
      };
    },
  };
}

/** A CBOR text shorter than 24 bytes. */
function text(value: string): Buffer {
  return Buffer.concat([Buffer.from([0x60 + value.length]), Buffer.from(value)]);
}

/** {1: 2 (EC2), 3: -7 (ES256), -1: 1 (P-256), -2: x, -3: y} */
function coseKey(key: KeyObject): Buffer {
  const { x = '', y = '' } = key.export({ format: 'jwk' });
  const bytes = (coordinate: string) => Buffer.concat([Buffer.from([0x58, 32]), Buffer.from(coordinate, 'base64url')]);
  const head = Buffer.from([0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21]);
  return Buffer.concat([head, bytes(x), Buffer.from([0x22]), bytes(y)]);
}
