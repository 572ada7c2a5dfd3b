import { encode } from 'uqr';
import { keepNewest } from '../../core/runtime/keep-newest.ts';
import { type Html, html } from './html.ts';

/** The number of white modules around the code. The standard requires 4, and scanners in dark rooms need them. */
const QUIET_MODULES = 4;

/**
 * Renders an address's QR code as an SVG. It's black on white in every colour scheme, because scanners expect that. It contains nothing but
 * the address, because wallets disagree about everything else. The SVG is a single path in which the runs of each row are strokes.
 * `modulePixels` is a whole number so that the edges are sharp. An address has 29 modules per side, or 37 with the quiet zone.
 */
export function renderQr(address: string, label: string, modulePixels = 5): Html {
  const { size, path } = drawn.get(address) ?? draw(address);
  const pixels = size * modulePixels;
  // The colours are attributes, because the Content-Security-Policy forbids inline styles, and the code must be readable without the style
  // sheet.
  return html`<svg class="qr" role="img" aria-label="${label}" width="${pixels}" height="${pixels}" viewBox="0 0 ${size} ${size}" shape-rendering="crispEdges"><path fill="#fff" d="M0 0h${size}v${size}H0z"/><path stroke="#000" d="${path}"/></svg>`;
}

/**
 * The codes are cached, because drawing one takes a millisecond, longer than the rest of the page, and a project's invoices share only a
 * few addresses.
 */
const drawn = new Map<string, { size: number; path: string }>();
/** At 3 KB each, this many codes need 3 MB. */
const MAX_DRAWN = 1000;

function draw(address: string): { size: number; path: string } {
  const { data, size } = encode(address, { ecc: 'M', border: QUIET_MODULES });
  const drawing = { size, path: data.map(strokeRow).join('') };
  keepNewest(drawn, address, drawing, MAX_DRAWN);
  return drawing;
}

/**
 * Returns strokes such as `M4 4.5h7m2 0h1`, which start at the first dark module, with each run followed by the gap before the next one.
 */
function strokeRow(row: readonly boolean[], y: number): string {
  let path = '';
  let position = 0;
  for (let x = 0; x < row.length; x++) {
    if (!row[x]) continue;
    const start = x;
    while (row[x + 1]) x++;
    path += `${path === '' ? `M${start} ${y}.5` : `m${start - position} 0`}h${x + 1 - start}`;
    position = x + 1;
  }
  return path;
}
