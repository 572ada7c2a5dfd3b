import { asSum } from '../../domain/money.ts';
import type { TodayView } from '../../operator/today/views.ts';
import { type Html, html } from '../../web/html.ts';
import { ltr, money, number, table } from '../page/pieces.ts';

type Days = NonNullable<TodayView['figures']>['days'];

const WIDTH = 600;
const HEIGHT = 120;
const GAP = 4;
/** A day with anything at all is seen. */
const LEAST = 3;

/** Bars of what was paid on each day, and the same as a table. Nothing in it needs a script or a style. */
export function renderDays(days: Days): Html {
  const micro = days.map(({ amount }) => BigInt(amount.replace('.', '')));
  const most = micro.reduce((top, each) => (each > top ? each : top), 1n);
  const step = WIDTH / days.length;
  const bars = days.map(({ day, count, amount }, index) => {
    const share = Number(((micro[index] ?? 0n) * 1000n) / most) / 1000;
    const height = count === 0 ? 1 : Math.max(LEAST, Math.round(share * HEIGHT));
    const [x, y] = [Math.round(index * step * 10) / 10, HEIGHT - height];
    const look = count === 0 ? 'none' : index === days.length - 1 ? 'now' : 'bar-of-day';
    return html`<rect class="${look}" x="${x}" y="${y}" width="${step - GAP}" height="${height}" rx="2"><title>${day}: ${number(count)} paid, ${asSum(amount)} USDT</title></rect>`;
  });
  const [first, last] = [days[0]?.day ?? '', days.at(-1)?.day ?? ''];
  const rows = days.filter(({ count }) => count > 0).toReversed();
  const columns = [
    ['Day (UTC)', ({ day }: Days[number]) => ltr(day)],
    ['Paid', ({ count }: Days[number]) => number(count), 'number'],
    ['USDT', ({ amount }: Days[number]) => money(amount), 'number'],
  ] as const;
  const shown =
    rows.length === 0
      ? html`<p class="hint">Nothing was paid in these days.</p>`
      : table('What was paid on each day', columns, rows);
  return html`<svg class="chart" role="img" aria-label="USDT paid on each of the last ${days.length} days; the table below has the figures" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none">${bars}</svg>
<p class="axis hint"><span>${first}</span><span>${last}</span></p>
<details><summary>As a table</summary>${shown}</details>`;
}
