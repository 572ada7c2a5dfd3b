export const ID_BYTES = 16;
/** 16 KB. */
export const MAX_PAGE_IDS = 1000;

/** UUIDs as the content of a page: 16 bytes each. */
export function encodeIds(ids: readonly string[]): Buffer {
  return Buffer.from(ids.join('').replaceAll('-', ''), 'hex');
}

export function decodeIds(content: Buffer): string[] {
  const ids: string[] = [];
  for (let at = 0; at + ID_BYTES <= content.length; at += ID_BYTES) {
    ids.push(dashed(content.toString('hex', at, at + ID_BYTES)));
  }
  return ids;
}

function dashed(hex: string): string {
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
