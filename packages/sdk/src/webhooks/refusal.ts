import type { VerificationCode } from './verification-error.ts';

/** Why a webhook is rejected, before the diagnosis is added. */
export class Refusal {
  readonly code: VerificationCode;
  readonly message: string;

  constructor(code: VerificationCode, message: string) {
    this.code = code;
    this.message = message;
  }
}

export function refuse(code: VerificationCode, message: string): never {
  throw new Refusal(code, message);
}
