import { encode } from 'uqr';
import { type Html, rawHtml } from '../web/html.ts';

/** White modules around the code: the standard asks for 4, and scanners in dark rooms need them. */
const QUIET_MODULES = 4;
/** Whole pixels, so that the edges stay sharp: an address has 29 modules a side, with the quiet zone 37, so 185 pixels. */
const PIXELS_PER_MODULE = 5;

/**
 * The QR code of an address as an SVG, black on white in every colour scheme, because scanners expect that. It holds the bare
 * address and nothing else: wallets disagree about everything else. One path; the runs of each row are strokes.
 */
export function renderQr(address: string): Html {
  const { data, size } = encode(address, { ecc: 'M', border: QUIET_MODULES });
  const pixels = size * PIXELS_PER_MODULE;
  // Colours are attributes, for the Content-Security-Policy forbids inline style, and a page without its style sheet must scan too.
  return rawHtml(
    `<svg class="qr" role="img" aria-label="QR code of the address" width="${pixels}" height="${pixels}" viewBox="0 0 ${size} ${size}" shape-rendering="crispEdges"><path fill="#fff" d="M0 0h${size}v${size}H0z"/><path stroke="#000" d="${data.map(strokeRow).join('')}"/></svg>`,
  );
}

/** `M4 4.5h7m2 0h1`: from the first dark module, each run and the gap before the next. */
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
