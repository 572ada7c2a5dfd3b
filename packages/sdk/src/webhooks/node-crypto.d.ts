/** The only module of Node.js that the SDK may import, and the part of it that is used. The types of Node.js are left out on purpose. */
declare module 'node:crypto' {
  export const webcrypto: Crypto;
}
