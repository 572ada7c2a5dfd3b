import fc from 'fast-check';
import { PNG } from 'pngjs';
import { describe, expect, test } from 'vitest';
import { LOGOS } from '../../../../test/support/logos.ts';
import { MAX_LOGO_BYTES, readLogo } from './logo.ts';

/** The reason why a file is refused; the test fails if it is not. */
function reason(bytes: Uint8Array): string {
  const read = readLogo(bytes);
  if (read.kind === 'ok') throw new Error(`was read as ${read.type}`);
  return read.reason;
}

/** A chunk of a PNG with so many zeros in it. */
function chunk(type: string, length: number): Buffer {
  const bytes = Buffer.alloc(12 + length);
  bytes.writeUInt32BE(length);
  bytes.write(type, 4);
  return bytes;
}

const PNG_HEADER = LOGOS.png.subarray(8, 33);

/** A part of a WebP that says of itself that it is whole. */
function wholeWebp(part: Buffer): Buffer {
  const bytes = Buffer.from(part);
  bytes.writeUInt32LE(bytes.length - 8, 4);
  return bytes;
}

function png(width: number, height: number): Buffer {
  return PNG.sync.write(new PNG({ width, height }));
}

test.each([
  ['png', 'image/png'],
  ['jpeg', 'image/jpeg'],
  ['webp', 'image/webp'],
  ['losslessWebp', 'image/webp'],
  ['extendedWebp', 'image/webp'],
] as const)('what a browser writes as %s is read with its size', (name, type) => {
  expect(readLogo(LOGOS[name])).toEqual({ kind: 'ok', type, width: 48, height: 20 });
});

/** Where each kind of picture has its sides, by its specification. */
const WRITE_SIDES: Record<keyof typeof LOGOS, (bytes: Buffer, width: number, height: number, rest: number) => void> = {
  png: (bytes, width, height) => bytes.writeUInt32BE(height, bytes.writeUInt32BE(width, 16)),
  jpeg: (bytes, width, height) => {
    const frame = bytes.indexOf(Buffer.from([0xff, 0xc0]));
    bytes.writeUInt16BE(width, bytes.writeUInt16BE(height, frame + 5));
  },
  // 14 bits each, and two that say how to scale it.
  webp: (bytes, width, height, rest) =>
    bytes.writeUInt16LE(height | ((rest & 3) << 14), bytes.writeUInt16LE(width | ((rest & 12) << 12), 26)),
  // 14 bits each, less one, and four that say other things.
  losslessWebp: (bytes, width, height, rest) =>
    bytes.writeUInt32LE(((width - 1) | ((height - 1) << 14) | (rest << 28)) >>> 0, 21),
  // 24 bits each, less one.
  extendedWebp: (bytes, width, height) => bytes.writeUIntLE(height - 1, bytes.writeUIntLE(width - 1, 24, 3), 3),
};

test.each(Object.keys(LOGOS) as (keyof typeof LOGOS)[])('the sides of %s are read where they stand', (name) => {
  const side = fc.integer({ min: 16, max: 1024 });
  fc.assert(
    fc.property(side, side, fc.nat(15), (width, height, rest) => {
      const bytes = Buffer.from(LOGOS[name]);
      WRITE_SIDES[name](bytes, width, height, rest);
      expect(readLogo(bytes)).toMatchObject({ kind: 'ok', width, height });
      // In a larger array, as a file arrives in the buffer of a connection.
      const within = Buffer.concat([Buffer.from('RIFF'), bytes, Buffer.from('more')]);
      expect(readLogo(within.subarray(4, 4 + bytes.length))).toMatchObject({ width, height });
    }),
    { numRuns: 30 },
  );
  const wide = Buffer.from(LOGOS[name]);
  WRITE_SIDES[name](wide, 0x2fff, 0x10ff, 0);
  expect(reason(wide)).toBe('has 12287 x 4351 px: make each side 16 to 1024 px');
});

test('a JPEG is read whatever segments stand before its frame, with fill bytes between them', () => {
  const frame = LOGOS.jpeg.indexOf(Buffer.from([0xff, 0xc0]));
  const segment = (marker: number, length: number) => [
    0xff,
    marker,
    length >> 8,
    length & 255,
    ...Array(length - 2).fill(0),
  ];
  const withSegments = (...bytes: number[]) =>
    readLogo(Buffer.concat([LOGOS.jpeg.subarray(0, frame), Buffer.from(bytes), LOGOS.jpeg.subarray(frame)]));
  const read = { kind: 'ok', type: 'image/jpeg', width: 48, height: 20 };
  for (const marker of [0xc4, 0xc8, 0xcc, 0xbf, 0xd0, 0xe1, 0xfe]) {
    expect(withSegments(...segment(marker, 300))).toEqual(read);
    expect(withSegments(0xff, 0xff, ...segment(marker, 2))).toEqual(read);
  }
  for (const marker of [0xc1, 0xc2, 0xc3, 0xc5, 0xc7, 0xc9, 0xcb, 0xcd, 0xcf]) {
    const bytes = Buffer.from(LOGOS.jpeg);
    bytes[frame + 1] = marker;
    expect(readLogo(bytes)).toEqual(read);
  }
  expect(withSegments(0)).toMatchObject({ kind: 'refused' });
});

test('a side has 16 to 1024 px', () => {
  expect(readLogo(png(16, 1024))).toMatchObject({ kind: 'ok', width: 16, height: 1024 });
  expect(reason(png(15, 64))).toBe('has 15 x 64 px: make each side 16 to 1024 px');
  expect(reason(png(64, 1025))).toBe('has 64 x 1025 px: make each side 16 to 1024 px');
});

test('a file has at most 32 KiB', () => {
  const small = LOGOS.jpeg;
  expect(readLogo(Buffer.concat([small, Buffer.alloc(MAX_LOGO_BYTES - small.length)]))).toMatchObject({ kind: 'ok' });
  expect(reason(Buffer.concat([small, Buffer.alloc(MAX_LOGO_BYTES + 1 - small.length)]))).toBe(
    'is larger than 32 KiB: scale it down, for example to a height of 256 px',
  );
});

describe('refused, with what to do', () => {
  test('what moves', () => {
    const control = Buffer.from('\0\0\0\x08acTL\0\0\0\x02\0\0\0\0\0\0\0\0', 'latin1');
    const afterHeader = 33;
    const apng = Buffer.concat([LOGOS.png.subarray(0, afterHeader), control, LOGOS.png.subarray(afterHeader)]);
    expect(reason(apng)).toBe('is an animated PNG: save a single frame');
    const animated = Buffer.from(LOGOS.extendedWebp);
    animated[20] = (animated[20] ?? 0) | 0x02;
    expect(reason(animated)).toBe('is an animated WebP: save a single frame');
  });

  test.each([
    ['<svg xmlns="http://www.w3.org/2000/svg"/>', 'an SVG, which can contain scripts'],
    ['\xef\xbb\xbf<?xml version="1.0"?>\n<svg/>', 'an SVG, which can contain scripts'],
    ['\n<!-- Inkscape --><svg/>', 'an SVG, which can contain scripts'],
    ['GIF89a\x30\0\x14\0', 'a GIF'],
    ['GIF87a\x30\0\x14\0', 'a GIF'],
    ['xGIF89a', 'not a PNG, JPEG or WebP'],
    ['<!DOCTYPE svg>', 'an SVG, which can contain scripts'],
    ['x<svg/>', 'not a PNG, JPEG or WebP'],
    ['\0\0\0\x1cftypheic\0\0\0\0', 'an AVIF or HEIC picture'],
    ['\0\0\0\x1cftypmif1\0\0\0\0', 'an AVIF or HEIC picture'],
    ['\0\0\0\x1cftypisom\0\0\0\0', 'not a PNG, JPEG or WebP'],
    ['\0\0\0\x1cxftypavif\0\0\0\0', 'not a PNG, JPEG or WebP'],
    ['RIFF\0\0\0\0WAVE', 'not a PNG, JPEG or WebP'],
    ['RIFX\0\0\0\0WEBP', 'not a PNG, JPEG or WebP'],
    ['\0\0\0\x1cftypavif\0\0\0\0', 'an AVIF or HEIC picture'],
    ['BM\x36\0\0\0', 'not a PNG, JPEG or WebP'],
    ['<script>alert(1)</script>', 'not a PNG, JPEG or WebP'],
    // The bytes of a PNG that was sent as text.
    ['\xef\xbf\xbdPNG\n\x1a\n', 'not a PNG, JPEG or WebP'],
  ])('%j', (start, what) => {
    const bytes = Buffer.from(start, 'latin1');
    expect(reason(bytes)).toContain(`is ${what}`);
    expect(reason(bytes)).toContain('save it as PNG, JPEG or WebP');
  });

  test.each([
    ['a chunk before its header', [chunk('IDAT', 4), PNG_HEADER]],
    ['two headers', [PNG_HEADER, PNG_HEADER]],
  ])('a PNG with %s', (_, chunks) => {
    const bytes = Buffer.concat([LOGOS.png.subarray(0, 8), ...chunks, chunk('IEND', 0)]);
    expect(reason(bytes)).toBe('starts like a PNG file but is damaged or truncated: save it again');
  });

  test.each([
    ['whose first chunk is none that holds a size', 'webp', 12, 'VP8?'],
    ['without the mark of a lossy picture', 'webp', 23, 'xxx'],
    ['without the mark of a lossless picture', 'losslessWebp', 20, 'x'],
  ] as const)('a WebP %s', (_, name, at, text) => {
    const bytes = Buffer.from(LOGOS[name]);
    bytes.write(text, at, 'latin1');
    expect(reason(bytes)).toBe('starts like a WebP file but is damaged or truncated: save it again');
  });

  test.each([
    ['webp', 30],
    ['losslessWebp', 25],
    ['extendedWebp', 30],
  ] as const)('%s of less than its first %i bytes, which say the size', (name, length) => {
    expect(readLogo(wholeWebp(LOGOS[name].subarray(0, length)))).toMatchObject({ width: 48, height: 20 });
    expect(reason(wholeWebp(LOGOS[name].subarray(0, length - 1)))).toContain('damaged or truncated');
  });

  test('an empty file', () => {
    expect(reason(Buffer.alloc(0))).toBe('is empty: use a PNG, JPEG or WebP file');
  });

  test.each(Object.entries(LOGOS))('%s that is cut off anywhere', (_, whole) => {
    for (let length = 0; length < whole.length; length += 1)
      expect(readLogo(whole.subarray(0, length)).kind).toBe('refused');
    const half = reason(whole.subarray(0, whole.length / 2));
    expect(half).toMatch(/^starts like a (PNG|JPEG|WebP) file but is damaged or truncated: save it again$/);
  });
});

test('any bytes are borne, also behind the beginning of a picture', () => {
  const starts = Object.values(LOGOS).flatMap((whole) => [8, 16, 24, 40].map((length) => whole.subarray(0, length)));
  fc.assert(
    fc.property(fc.constantFrom(Buffer.alloc(0), ...starts), fc.uint8Array({ maxLength: 200 }), (start, rest) => {
      const read = readLogo(Buffer.concat([start, rest]));
      if (read.kind === 'ok') expect(Math.max(read.width, read.height)).toBeLessThanOrEqual(1024);
      else expect(read.reason).toMatch(/: .*(save|use|make|scale)/);
    }),
    { numRuns: 2000 },
  );
});
