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
export function toLinearLight(channel: number): number {
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
