import type { State } from '../../operator/doctor/check.ts';
import { type CheckView, type DoctorView, gatherChecks } from '../../operator/doctor/run-doctor.ts';
import { html } from '../../web/html.ts';
import type { Page } from '../page/layout.ts';
import { number, time } from '../page/pieces.ts';
import { renderText } from '../page/words.ts';

/** What is wrong around this process, and what is to be done? */
export function doctorPage({ asOf, counts, checks }: DoctorView): Page {
  const parts = (Object.keys(HEADINGS) as State[]).flatMap((state) => {
    const found = checks.filter((check) => check.state === state);
    if (found.length === 0) return [];
    return html`<section class="card" aria-labelledby="${state}"><h2 id="${state}">${HEADINGS[state]}</h2><ul class="concerns">${gatherChecks(found).map(renderCheck)}</ul></section>`;
  });
  return {
    title: 'Doctor',
    beside: html`<p class="asof">As of ${time(asOf)} UTC <a href="/settings/doctor">Look again</a></p>`,
    main: html`<p>${number(counts.failed)} failed, ${number(counts.warning)} warnings, ${number(counts.good)} good, ${number(counts.skipped)} not looked at. On the machine that runs Quittance the doctor can be asked also while no service runs.</p>
${parts}`,
  };
}

const HEADINGS: Readonly<Record<State, string>> = {
  failed: 'Failed',
  warning: 'Warnings',
  good: 'Good',
  skipped: 'Not looked at',
};

const RANKS: Readonly<Record<State, string>> = { failed: '1', warning: '2', good: '3', skipped: '3' };

function renderCheck({ name, state, says, fix }: CheckView) {
  const names = name.split(', ').map((each) => html`<span class="rank">${each}</span>`);
  return html`<li data-rank="${RANKS[state]}">${names}<div><p>${renderText(says)}</p>${fix === null ? null : html`<p class="hint">${renderText(fix)}</p>`}</div></li>`;
}
