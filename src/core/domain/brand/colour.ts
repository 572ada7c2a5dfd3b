import { lightnessOf, type Rgb, toLinearLight, withLightness } from './oklch.ts';

/**
 * The colours that a page derives from a merchant's accent colour for one colour scheme, each as `#rrggbb`. `onAccent` is black or white;
 * `tint` is a background.
 */
export type AccentColours = { accent: string; onAccent: string; tint: string };

export type AccentPalette = { light: AccentColours; dark: AccentColours };

/**
 * Returns a page's colours for a merchant's `accent`, such as `#0a6549`. In both schemes, the accent has a contrast of at least 4.5 against
 * the card, the page's background and its own tint; `onAccent` has at least 4.5 against the accent; and text has at least 7 against the
 * tint. An accent that meets these requirements stays unchanged. Otherwise its lightness changes as little as necessary, and its hue is
 * kept.
 */
export function accentPalette(accent: string): AccentPalette {
  const colour = toRgb(accent);
  return { light: coloursIn(LIGHT, colour), dark: coloursIn(DARK, colour) };
}

/** Returns `#0a6549`, `0a6549`, `#abc` or `abc` as `#rrggbb` in lower case, or `null` for any other text. */
export function parseColour(text: string): string | null {
  const digits = /^#?([0-9a-f]{6}|[0-9a-f]{3})$/i.exec(text)?.[1]?.toLowerCase();
  if (digits === undefined) return null;
  return `#${digits.length === 6 ? digits : [...digits].map((digit) => digit + digit).join('')}`;
}

/** Returns the contrast ratio of two colours, given in either order, from 1 to 21 (WCAG 2.2, "contrast ratio" and "relative luminance"). */
export function contrast(one: string, other: string): number {
  return contrastOf(toRgb(one), toRgb(other));
}

/** The requirements of WCAG 2.2, success criteria 1.4.3 and 1.4.6, for text of any size. Borders need far less (1.4.11). */
const LEAST_ACCENT_CONTRAST = 4.5;
const LEAST_INK_CONTRAST = 7;

/**
 * Colours from public/tokens.css. `tintShare` is the accent's share of its tint; at the lightness `end`, every contrast requirement is met.
 */
type Scheme = { ink: Rgb; ground: Rgb; card: Rgb; tintShare: number; end: 0 | 1 };

const LIGHT: Scheme = {
  ink: toRgb('#14201b'),
  ground: toRgb('#eef2f0'),
  card: toRgb('#ffffff'),
  tintShare: 0.1,
  end: 0,
};
const DARK: Scheme = {
  ink: toRgb('#edf3f0'),
  ground: toRgb('#0c1210'),
  card: toRgb('#161e1b'),
  tintShare: 0.12,
  end: 1,
};

/** This number of bisection steps determines the lightness to within one channel step. */
const LIGHTNESS_STEPS = 10;

function coloursIn(scheme: Scheme, wanted: Rgb): AccentColours {
  if (fits(scheme, wanted)) return describe(scheme, wanted);
  let [near, far] = [lightnessOf(wanted), scheme.end as number];
  let found = withLightness(wanted, far);
  for (let step = 0; step < LIGHTNESS_STEPS; step += 1) {
    const middle = (near + far) / 2;
    const tried = withLightness(wanted, middle);
    if (fits(scheme, tried)) [far, found] = [middle, tried];
    else near = middle;
  }
  return describe(scheme, found);
}

function describe(scheme: Scheme, accent: Rgb): AccentColours {
  return { accent: toHex(accent), onAccent: toHex(onAccent(accent)), tint: toHex(tintOf(scheme, accent)) };
}

function fits(scheme: Scheme, accent: Rgb): boolean {
  const tint = tintOf(scheme, accent);
  const others = [scheme.card, scheme.ground, tint, onAccent(accent)];
  return (
    others.every((other) => contrastOf(accent, other) >= LEAST_ACCENT_CONTRAST) &&
    contrastOf(scheme.ink, tint) >= LEAST_INK_CONTRAST
  );
}

const BLACK: Rgb = [0, 0, 0];
const WHITE: Rgb = [255, 255, 255];

function onAccent(accent: Rgb): Rgb {
  return contrastOf(accent, WHITE) >= contrastOf(accent, BLACK) ? WHITE : BLACK;
}

function tintOf({ card, tintShare }: Scheme, accent: Rgb): Rgb {
  const mix = (index: 0 | 1 | 2) => Math.round(card[index] * (1 - tintShare) + accent[index] * tintShare);
  return [mix(0), mix(1), mix(2)];
}

function contrastOf(one: Rgb, other: Rgb): number {
  const [darker = 0, lighter = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (lighter + 0.05) / (darker + 0.05);
}

function luminance([red, green, blue]: Rgb): number {
  return 0.2126 * toLinearLight(red) + 0.7152 * toLinearLight(green) + 0.0722 * toLinearLight(blue);
}

function toRgb(colour: string): Rgb {
  const value = /^#[0-9a-f]{6}$/.test(colour) ? Number.parseInt(colour.slice(1), 16) : Number.NaN;
  if (Number.isNaN(value)) throw new Error(`${JSON.stringify(colour)} is not a colour such as #0a6549`);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

function toHex([red, green, blue]: Rgb): string {
  return `#${((red << 16) | (green << 8) | blue).toString(16).padStart(6, '0')}`;
}
