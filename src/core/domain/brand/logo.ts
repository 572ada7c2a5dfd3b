export type LogoType = 'image/png' | 'image/jpeg' | 'image/webp';

type ReadLogo =
  | { kind: 'ok'; type: LogoType; width: number; height: number }
  /** The reason also says what to do. */
  | { kind: 'refused'; reason: string };

/** The database schema's limit. Logos are shown 2.5 rem high, so this is plenty. */
export const MAX_LOGO_BYTES = 32 * 1024;
/** In pixels per side. A smaller logo looks blurred, and a larger one has to be scaled down by every payer's phone. */
const SIDE = { least: 16, most: 1024 };

/**
 * Recognises a still PNG, JPEG or WebP by its bytes, and reads its size from its header without decoding the picture. Accepts any bytes.
 */
export function readLogo(bytes: Uint8Array): ReadLogo {
  const refuse = (reason: string) => ({ kind: 'refused', reason }) as const;
  if (bytes.length === 0) return refuse('is empty: use a PNG, JPEG or WebP file');
  if (bytes.length > MAX_LOGO_BYTES) {
    return refuse(`is larger than ${MAX_LOGO_BYTES / 1024} KiB: scale it down, for example to a height of 256 px`);
  }
  const format = FORMATS.find(({ recognises }) => recognises(bytes));
  if (format === undefined) return refuse(`${nameOther(bytes)}: save it as PNG, JPEG or WebP`);
  const picture = format.read(bytes);
  if (picture === null) return refuse(`starts like a ${format.name} file but is damaged or truncated: save it again`);
  if (picture === 'animated') return refuse(`is an animated ${format.name}: save a single frame`);
  const { width, height } = picture;
  if (Math.min(width, height) < SIDE.least || Math.max(width, height) > SIDE.most) {
    return refuse(`has ${width} x ${height} px: make each side ${SIDE.least} to ${SIDE.most} px`);
  }
  return { kind: 'ok', type: format.type, width, height };
}

type Picture = { width: number; height: number };

type Format = {
  name: string;
  type: LogoType;
  recognises(bytes: Uint8Array): boolean;
  read(bytes: Uint8Array): Picture | 'animated' | null;
};

const FORMATS: readonly Format[] = [
  { name: 'PNG', type: 'image/png', recognises: (bytes) => latin1(bytes, 0, 8) === '\x89PNG\r\n\x1a\n', read: readPng },
  { name: 'JPEG', type: 'image/jpeg', recognises: (bytes) => latin1(bytes, 0, 3) === '\xff\xd8\xff', read: readJpeg },
  {
    name: 'WebP',
    type: 'image/webp',
    recognises: (bytes) => latin1(bytes, 0, 4) === 'RIFF' && latin1(bytes, 8, 12) === 'WEBP',
    read: readWebp,
  },
];

/**
 * Reads chunks of length, type, content and checksum, from `IHDR` to `IEND`. With an `acTL` chunk the PNG is animated (PNG, third edition).
 */
function readPng(bytes: Uint8Array): Picture | 'animated' | null {
  const view = viewOf(bytes);
  let picture: Picture | null = null;
  // A chunk has at least 12 bytes, so the loop terminates.
  for (let at = 8; at + 12 <= bytes.length; at += 12 + view.getUint32(at)) {
    const type = latin1(bytes, at + 4, at + 8);
    if (type === 'acTL') return 'animated';
    if (type === 'IEND') return picture;
    if ((type === 'IHDR') !== (picture === null)) return null;
    if (type === 'IHDR' && at + 25 <= bytes.length) {
      picture = { width: view.getUint32(at + 8), height: view.getUint32(at + 12) };
    }
  }
  return null;
}

/**
 * Reads segments of marker, length and content. The size is in a frame's segment (`SOF`). After that, the end marker (`EOI`) occurs only at
 * the end (ITU-T T.81, B.1.1 and B.2.2).
 */
function readJpeg(bytes: Uint8Array): Picture | null {
  const view = viewOf(bytes);
  let at = 2;
  // A segment has at least 4 bytes, so the loop terminates.
  while (at + 9 <= bytes.length && bytes[at] === 0xff) {
    const marker = view.getUint8(at + 1);
    if (isFrame(marker)) {
      const isWhole = latin1(bytes, at, bytes.length).includes('\xff\xd9');
      return isWhole ? { width: view.getUint16(at + 7), height: view.getUint16(at + 5) } : null;
    }
    // A marker may be preceded by fill bytes.
    at += marker === 0xff ? 1 : 2 + Math.max(view.getUint16(at + 2), 2);
  }
  return null;
}

/**
 * Whether a marker is one of `SOF0` to `SOF15`. The range also contains the markers for tables (`DHT`, `JPG`, `DAC`), which aren't frames.
 */
function isFrame(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
}

/** Reads the size from the first chunk, which has a different form for each of the three kinds (RFC 9649, 2.5 to 2.7). */
function readWebp(bytes: Uint8Array): Picture | 'animated' | null {
  const view = viewOf(bytes);
  const kind = latin1(bytes, 12, 16);
  const headerBytes = kind === 'VP8L' ? 25 : 30;
  if (bytes.length < headerBytes || view.getUint32(4, true) + 8 > bytes.length) return null;
  switch (kind) {
    case 'VP8 ':
      if (latin1(bytes, 23, 26) !== '\x9d\x01\x2a') return null;
      return { width: view.getUint16(26, true) & 0x3fff, height: view.getUint16(28, true) & 0x3fff };
    case 'VP8L': {
      if (bytes[20] !== 0x2f) return null;
      const sides = view.getUint32(21, true);
      return { width: (sides & 0x3fff) + 1, height: ((sides >> 14) & 0x3fff) + 1 };
    }
    case 'VP8X':
      if ((view.getUint8(20) & 0x02) !== 0) return 'animated';
      return { width: (view.getUint32(24, true) & 0xffffff) + 1, height: (view.getUint32(26, true) >>> 8) + 1 };
    default:
      return null;
  }
}

/** Describes a file whose format isn't supported. */
function nameOther(bytes: Uint8Array): string {
  const start = latin1(bytes, 0, 512);
  if (/^GIF8[79]a/.test(start)) return 'is a GIF';
  if (/^(?:\xef\xbb\xbf)?\s*<(?:\?xml|!--|!doctype svg|svg)/i.test(start)) {
    return 'is an SVG, which can contain scripts and load other files';
  }
  if (/^ftyp(?:avif|avis|mif1|hei[cfmsx])/.test(start.slice(4))) return 'is an AVIF or HEIC picture';
  return 'is not a PNG, JPEG or WebP';
}

/** Maps each byte to the character with its code. */
function latin1(bytes: Uint8Array, start: number, end: number): string {
  return String.fromCharCode(...bytes.subarray(start, end));
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
