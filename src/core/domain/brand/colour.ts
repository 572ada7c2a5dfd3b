/**
 * The colours that a page derives from a merchant's accent colour for one colour scheme, each as `#rrggbb`. `onAccent` is black or white;
 * `tint` is a background.
 */
export type AccentColours = { accent: string; onAccent: string; tint: string };

type AccentPalette = { light: AccentColours; dark: AccentColours };

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

/** An sRGB colour. Each channel is an integer from 0 to 255. */
export type Rgb = readonly [red: number, green: number, blue: number];

/**
 * An OKLab colour. `lightness` goes from 0 (black) to 1 (white). The direction of the vector (a, b) is the hue, and its length is the
 * chroma.
 */
type Oklab = { lightness: number; a: number; b: number };

/**
 * Returns a colour with the same hue and another lightness, from 0 to 1. It keeps the chroma, or as much of it as sRGB allows at that
 * lightness. The matrices are from B. Ottosson, "A perceptual color space for image processing" (2020).
 */
export function withLightness(colour: Rgb, lightness: number): Rgb {
  const { a, b } = toOklab(colour);
  let [kept, lost] = [0, 1];
  if (isInGamut(toLinear({ lightness, a, b }))) kept = 1;
  for (let step = 0; kept < 1 && step < CHROMA_STEPS; step += 1) {
    const tried = (kept + lost) / 2;
    if (isInGamut(toLinear({ lightness, a: a * tried, b: b * tried }))) kept = tried;
    else lost = tried;
  }
  const [red, green, blue] = toLinear({ lightness, a: a * kept, b: b * kept }).map(fromLinearLight);
  return [red ?? 0, green ?? 0, blue ?? 0];
}

/** Returns the lightness in OKLab, from 0 to 1. */
export function lightnessOf(colour: Rgb): number {
  return toOklab(colour).lightness;
}

/** Returns the linear light of a channel, from 0 to 1, using the sRGB transfer function (IEC 61966-2-1). */
function toLinearLight(channel: number): number {
  const value = channel / 255;
  return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
}

/** This number of bisection steps determines the chroma to within one channel step. */
const CHROMA_STEPS = 9;

function fromLinearLight(light: number): number {
  const clipped = Math.min(Math.max(light, 0), 1);
  const value = clipped <= 0.0031308 ? clipped * 12.92 : 1.055 * clipped ** (1 / 2.4) - 0.055;
  return Math.round(value * 255);
}

/** The matrices are rounded, so colours at the very edge of sRGB end up slightly outside it. */
const GAMUT_SLACK = 1e-6;

function isInGamut(linear: readonly number[]): boolean {
  return linear.every((light) => light >= -GAMUT_SLACK && light <= 1 + GAMUT_SLACK);
}

function toOklab(colour: Rgb): Oklab {
  const [red, green, blue] = [toLinearLight(colour[0]), toLinearLight(colour[1]), toLinearLight(colour[2])];
  const l = Math.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue);
  const m = Math.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue);
  const s = Math.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue);
  return {
    lightness: 0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    a: 1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    b: 0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  };
}

function toLinear({ lightness, a, b }: Oklab): [number, number, number] {
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
}
