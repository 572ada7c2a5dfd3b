/** The one module of Node.js that the SDK may ask for, and what it uses of it; the types of Node.js are left out on purpose. */
declare module 'node:crypto' {
  export const webcrypto: Crypto;
}
