import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type AccentColours,
  accentPalette,
  contrast,
  lightnessOf,
  parseColour,
  type Rgb,
  withLightness,
} from './colour.ts';

const css = readFileSync(new URL('../../../../public/tokens.css', import.meta.url), 'utf8');

/** The custom properties of the light scheme, which come first, or of the dark one. */
function property(name: string, scheme: 'light' | 'dark'): string {
  const values = [...css.matchAll(new RegExp(`--${name}: (#[0-9a-f]{3,6});`, 'g'))].map(([, value]) => value);
  const value = parseColour(values[scheme === 'light' ? 0 : 1] ?? '');
  if (value === null) throw new Error(`public/tokens.css says no --${name} for ${scheme}`);
  return value;
}

const anyColour = fc.integer({ min: 0, max: 0xffffff }).map((value) => `#${value.toString(16).padStart(6, '0')}`);
/** Greys and the corners of the cube, which random colours hardly ever are. */
const edgeColour = fc
  .tuple(...[0, 1, 2].map(() => fc.constantFrom('00', '01', '7f', '80', 'fe', 'ff')))
  .map((channels) => `#${channels.join('')}`);

/** The lowest of the contrasts of an accent. */
function leastContrast(scheme: 'light' | 'dark', { accent, onAccent, tint }: AccentColours): number {
  const others = [property('card', scheme), property('ground', scheme), tint, onAccent];
  return Math.min(...others.map((other) => contrast(accent, other)));
}

describe.each(['light', 'dark'] as const)('on %s', (scheme) => {
  test('whatever the colour, every text and border of the page keeps its contrast', () => {
    fc.assert(
      fc.property(fc.oneof(anyColour, edgeColour), (wanted) => {
        const colours = accentPalette(wanted)[scheme];
        expect(leastContrast(scheme, colours)).toBeGreaterThanOrEqual(4.5);
        expect(contrast(property('ink', scheme), colours.tint)).toBeGreaterThanOrEqual(7);
        expect(contrast(property('soft', scheme), colours.tint)).toBeGreaterThanOrEqual(4.5);
        expect(['#000000', '#ffffff']).toContain(colours.onAccent);
      }),
      { numRuns: 3000 },
    );
  });

  test('a colour that fits stays as it is, and another is moved no further than it must be', () => {
    let moved = 0;
    fc.assert(
      fc.property(fc.oneof(anyColour, edgeColour), (wanted) => {
        const colours = accentPalette(wanted)[scheme];
        expect(accentPalette(colours.accent)[scheme]).toEqual(colours);
        if (colours.accent === wanted) return;
        moved += 1;
        expect(leastContrast(scheme, colours)).toBeLessThan(4.7);
      }),
      { numRuns: 3000 },
    );
    expect(moved).toBeGreaterThan(500);
  });

  test('the colours of the page itself fit', () => {
    const accent = property('accent', scheme);
    expect(accentPalette(accent)[scheme].accent).toBe(accent);
    const own = { accent, onAccent: property('card', scheme), tint: property('tint', scheme) };
    expect(leastContrast(scheme, own)).toBeGreaterThanOrEqual(4.5);
    expect(contrast(property('ink', scheme), own.tint)).toBeGreaterThanOrEqual(7);
  });
});

test('a colour that is too light or too dark keeps its hue, and grey stays grey', () => {
  const accents = (wanted: string) => {
    const { light, dark } = accentPalette(wanted);
    return [light.accent, dark.accent];
  };
  expect(accents('#ffcc00')).toEqual(['#876a01', '#ffcc00']);
  expect(accents('#001f5b')).toEqual(['#001f5b', '#6891d6']);
  expect(accents('#ff0000')).toEqual(['#d70100', '#ff4a3a']);
  expect(accents('#808080')).toEqual(['#6e6e6e', '#919191']);
  // Almost black is not made a bright red.
  expect(accents('#010000')).toEqual(['#010000', '#9b8d8a']);
});

test('the contrast is that of WCAG 2.2', () => {
  expect(contrast('#000000', '#ffffff')).toBeCloseTo(21, 10);
  expect(contrast('#ffffff', '#ffffff')).toBe(1);
  // The lightest grey that white may stand on with 4.5, and its neighbour: a well-known pair.
  expect(contrast('#767676', '#ffffff')).toBeCloseTo(4.54, 2);
  expect(contrast('#ffffff', '#777777')).toBeCloseTo(4.48, 2);
});

test.each(['teal', '', '#abc', '#0a65490', 'x#0a6549', '0a6549', '#0A6549'])('%j gives no palette', (text) => {
  expect(() => accentPalette(text)).toThrow(`${JSON.stringify(text)} is not a colour such as #0a6549`);
});

test('a colour is read with and without its #, short and long, in any case', () => {
  for (const text of ['#aabbcc', 'aabbcc', '#abc', 'ABC', '#AaBbCc']) expect(parseColour(text)).toBe('#aabbcc');
  for (const text of ['', '#', 'teal', '#ab', '#abcd', '#aabbccdd', ' #abc', '#abc;', '#abg', 'rgb(1,2,3)', '##abc']) {
    expect(parseColour(text)).toBe(null);
  }
});

const channel = fc.integer({ min: 0, max: 255 });
const anyRgb: fc.Arbitrary<Rgb> = fc.tuple(channel, channel, channel);

test('the lightness of the primaries is the one that CSS Color 4 gives them', () => {
  expect(lightnessOf([255, 0, 0])).toBeCloseTo(0.62796, 4);
  expect(lightnessOf([0, 255, 0])).toBeCloseTo(0.86644, 4);
  expect(lightnessOf([0, 0, 255])).toBeCloseTo(0.45201, 4);
  expect(lightnessOf([255, 255, 255])).toBeCloseTo(1, 6);
  expect(lightnessOf([0, 0, 0])).toBe(0);
});

test('at its own lightness a colour is itself', () => {
  fc.assert(
    fc.property(anyRgb, (colour) => {
      for (const [index, value] of withLightness(colour, lightnessOf(colour)).entries()) {
        expect(Math.abs(value - (colour[index] ?? 0))).toBeLessThanOrEqual(1);
      }
    }),
  );
});

test('at any lightness a colour is one of sRGB, and as light as was asked', () => {
  fc.assert(
    fc.property(anyRgb, fc.double({ min: 0.1, max: 1, noNaN: true }), (colour, lightness) => {
      const moved = withLightness(colour, lightness);
      for (const value of moved) expect(Number.isInteger(value) && value >= 0 && value <= 255).toBe(true);
      expect(Math.abs(lightnessOf(moved) - lightness)).toBeLessThan(0.01);
    }),
  );
});

test('where sRGB has less of the chroma, as much is kept as it has', () => {
  const [pure, none] = [fc.constant(255), fc.constant(0)];
  const saturated: fc.Arbitrary<Rgb> = fc.oneof(
    fc.tuple(pure, channel, none),
    fc.tuple(none, pure, channel),
    fc.tuple(channel, none, pure),
  );
  fc.assert(
    fc.property(saturated, fc.double({ min: 0.2, max: 0.9, noNaN: true }), (colour, lightness) => {
      const moved = withLightness(colour, lightness);
      // One channel is at an end of its range, or would be beyond it with a little more.
      expect(Math.min(Math.min(...moved), 255 - Math.max(...moved))).toBeLessThanOrEqual(12);
      expect(Math.max(...moved) - Math.min(...moved)).toBeGreaterThan(20);
    }),
  );
});
