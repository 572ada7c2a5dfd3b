import fc from 'fast-check';
import { expect, test } from 'vitest';
import { lightnessOf, type Rgb, withLightness } from './oklch.ts';

const channel = fc.integer({ min: 0, max: 255 });
const anyColour: fc.Arbitrary<Rgb> = fc.tuple(channel, channel, channel);

test('the lightness of the primaries is the one that CSS Color 4 gives them', () => {
  expect(lightnessOf([255, 0, 0])).toBeCloseTo(0.62796, 4);
  expect(lightnessOf([0, 255, 0])).toBeCloseTo(0.86644, 4);
  expect(lightnessOf([0, 0, 255])).toBeCloseTo(0.45201, 4);
  expect(lightnessOf([255, 255, 255])).toBeCloseTo(1, 6);
  expect(lightnessOf([0, 0, 0])).toBe(0);
});

test('at its own lightness a colour is itself', () => {
  fc.assert(
    fc.property(anyColour, (colour) => {
      for (const [index, value] of withLightness(colour, lightnessOf(colour)).entries()) {
        expect(Math.abs(value - (colour[index] ?? 0))).toBeLessThanOrEqual(1);
      }
    }),
  );
});

test('at any lightness a colour is one of sRGB, and as light as was asked', () => {
  fc.assert(
    fc.property(anyColour, fc.double({ min: 0.1, max: 1, noNaN: true }), (colour, lightness) => {
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
