// biome-ignore-all lint/performance/noBarrelFile: the namespace `webhooks` of the package.
export { diagnosticAnswer } from './diagnostic-answer.ts';
export { type SignOptions, sign } from './sign.ts';
export { type VerifyOptions, verify, type WebhookHeaders } from './verify.ts';
