import { type MicroUsdt, microUsdt } from '../money.ts';
import { trimPasted } from './compare-pasted.ts';

/** No exchange charges this much, and the sum of this fee and any amount can still be formatted. */
const FEE = /^(\d{1,6})(?:\.(\d{1,6}))?$/;

/** Digits as typed on Arabic and Persian keyboards. */
const ARABIC_ZERO = 0x0660;
const PERSIAN_ZERO = 0x06f0;

/**
 * Reads a fee as people type it: `1`, `1.5`, `1,5`, `1.5 USDT`, `۱٫۵`. Returns `null` for anything else. A comma is read as a decimal
 * point, because no fee is in the thousands.
 */
export function readFee(text: string): MicroUsdt | null {
  const plain = trimPasted(text.slice(0, 100))
    .replace(/[\u0660-\u0669]/g, (digit) => String(digit.charCodeAt(0) - ARABIC_ZERO))
    .replace(/[\u06f0-\u06f9]/g, (digit) => String(digit.charCodeAt(0) - PERSIAN_ZERO))
    .replace(/\s*usdt$/i, '')
    .replace(/[,\u066b]/, '.');
  const found = FEE.exec(plain);
  if (found === null) return null;
  const [, integer = '', fraction = ''] = found;
  return microUsdt(BigInt(integer + fraction.padEnd(6, '0')));
}
