import fc from 'fast-check';
import { PNG } from 'pngjs';
import { describe, expect, test } from 'vitest';
import { LOGOS } from '../../test/support/logos.ts';
import { MAX_LOGO_BYTES, readLogo } from './logo.ts';

/** The reason why a file is refused; the test fails if it is not. */
function reason(bytes: Uint8Array): string {
  const read = readLogo(bytes);
  if (read.kind === 'ok') throw new Error(`was read as ${read.type}`);
  return read.reason;
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

test('a side has 16 to 1024 px', () => {
  expect(readLogo(png(16, 1024))).toMatchObject({ kind: 'ok', width: 16, height: 1024 });
  expect(reason(png(15, 64))).toBe('has 15 x 64 px: give each side 16 to 1024 px');
  expect(reason(png(64, 1025))).toBe('has 64 x 1025 px: give each side 16 to 1024 px');
});

test('a file has at most 32 KiB', () => {
  const small = LOGOS.jpeg;
  expect(readLogo(Buffer.concat([small, Buffer.alloc(MAX_LOGO_BYTES - small.length)]))).toMatchObject({ kind: 'ok' });
  expect(reason(Buffer.concat([small, Buffer.alloc(MAX_LOGO_BYTES + 1 - small.length)]))).toContain('more than 32 KiB');
});

describe('refused, with what to do', () => {
  test('what moves', () => {
    const control = Buffer.from('\0\0\0\x08acTL\0\0\0\x02\0\0\0\0\0\0\0\0', 'latin1');
    const afterHeader = 33;
    const apng = Buffer.concat([LOGOS.png.subarray(0, afterHeader), control, LOGOS.png.subarray(afterHeader)]);
    expect(reason(apng)).toBe('is an animated PNG: save one picture of it');
    const animated = Buffer.from(LOGOS.extendedWebp);
    animated[20] = (animated[20] ?? 0) | 0x02;
    expect(reason(animated)).toBe('is an animated WebP: save one picture of it');
  });

  test.each([
    ['<svg xmlns="http://www.w3.org/2000/svg"/>', 'an SVG, which can hold scripts'],
    ['\xef\xbb\xbf<?xml version="1.0"?>\n<svg/>', 'an SVG, which can hold scripts'],
    ['\n<!-- Inkscape --><svg/>', 'an SVG, which can hold scripts'],
    ['GIF89a\x30\0\x14\0', 'a GIF'],
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

  test('an empty file', () => {
    expect(reason(Buffer.alloc(0))).toContain('is empty');
  });

  test.each(Object.entries(LOGOS))('%s that is cut off anywhere', (_, whole) => {
    for (let length = 0; length < whole.length; length += 1)
      expect(readLogo(whole.subarray(0, length)).kind).toBe('refused');
  });
});

test('any bytes are borne, also behind the beginning of a picture', () => {
  const starts = Object.values(LOGOS).flatMap((whole) => [8, 16, 24, 40].map((length) => whole.subarray(0, length)));
  fc.assert(
    fc.property(fc.constantFrom(Buffer.alloc(0), ...starts), fc.uint8Array({ maxLength: 200 }), (start, rest) => {
      const read = readLogo(Buffer.concat([start, rest]));
      if (read.kind === 'ok') expect(Math.max(read.width, read.height)).toBeLessThanOrEqual(1024);
      else expect(read.reason).toMatch(/: .*(save|give|scale)/);
    }),
    { numRuns: 2000 },
  );
});
