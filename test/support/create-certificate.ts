import { generateKeyPairSync, sign } from 'node:crypto';

/**
 * Creates a self-signed certificate (PEM) for `names`, valid today and for another day. Clients that trust it as a `ca` trust it for these
 * names.
 */
export function createCertificate(names: readonly string[]): { key: string; cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const dayMs = 86_400_000;
  const issuer = der(SEQUENCE, der(SET, der(SEQUENCE, oid('550403'), der(UTF8_STRING, Buffer.from('Test')))));
  const alternativeNames = der(SEQUENCE, ...names.map((name) => der(DNS_NAME, Buffer.from(name))));
  const toSign = der(
    SEQUENCE,
    der(EXPLICIT_0, der(INTEGER, Buffer.of(2))),
    der(INTEGER, Buffer.of(1)),
    ECDSA_SHA256,
    issuer,
    der(SEQUENCE, utcTime(Date.now() - dayMs), utcTime(Date.now() + dayMs)),
    issuer,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(EXPLICIT_3, der(SEQUENCE, der(SEQUENCE, oid('551d11'), der(OCTET_STRING, alternativeNames)))),
  );
  const signature = der(BIT_STRING, Buffer.of(0), sign('sha256', toSign, privateKey));
  const base64 = der(SEQUENCE, toSign, ECDSA_SHA256, signature).toString('base64');
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${base64.replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`,
  };
}

const INTEGER = 0x02;
const BIT_STRING = 0x03;
const OCTET_STRING = 0x04;
const UTF8_STRING = 0x0c;
const UTC_TIME = 0x17;
const SEQUENCE = 0x30;
const SET = 0x31;
/** A tag of SubjectAltName (RFC 5280, 4.2.1.6). */
const DNS_NAME = 0x82;
const EXPLICIT_0 = 0xa0;
const EXPLICIT_3 = 0xa3;
const ECDSA_SHA256 = der(SEQUENCE, oid('2a8648ce3d040302'));

function der(tag: number, ...contents: Buffer[]): Buffer {
  const content = Buffer.concat(contents);
  return Buffer.concat([Buffer.of(tag, ...lengthOf(content.length)), content]);
}

/** Encodes a length in as few bytes as possible, because Go programs refuse longer forms. */
function lengthOf(length: number): number[] {
  if (length < 0x80) return [length];
  return length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
}

function oid(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, 'hex'));
}

function utcTime(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/\D/g, '').slice(2, 14);
  return der(UTC_TIME, Buffer.from(`${digits}Z`));
}
