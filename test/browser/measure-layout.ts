import axe from 'axe-core';
import type { Page } from 'playwright-core';

/** Layout problems, each named by the element's tag and text. Everything is empty or 0 if the page fits. */
export type Layout = {
  /** By how many pixels the page scrolls sideways. */
  sideways: number;
  /** Elements whose content is wider than they are, or that extend beyond the window's side. */
  cutOff: string[];
  /** Pairs of elements that overlap. */
  overlapping: string[];
  /** Controls smaller than 24 by 24 pixels (WCAG 2.2, 2.5.8). */
  small: string[];
  /** Elements that stay in place while the page scrolls, and so cover it on small screens. */
  pinned: string[];
};

export const FITS: Layout = { sideways: 0, cutOff: [], overlapping: [], small: [], pinned: [] };

/** Code that runs in the page is a string, because these files are type-checked as Node.js programs. */
const MEASURE = `(() => {
  const rect = (element) => element.getBoundingClientRect();
  const isSeen = (element) => element.checkVisibility({ visibilityProperty: true }) && !element.closest('.unseen, svg *') && rect(element).width > 0;
  const seen = (selector) => [...document.querySelectorAll(selector)].filter(isSeen);
  const name = (element) => '<' + element.localName + '> ' + element.textContent.trim().slice(0, 60);
  const root = document.documentElement;
  const isCutOff = (element) => {
    const { left, right } = rect(element);
    const isWider = element.clientWidth > 0 && element.scrollWidth > element.clientWidth;
    const isHigher = element.matches('button, summary') && element.scrollHeight > element.clientHeight + 1;
    return isWider || isHigher || left < -0.5 || right > root.clientWidth + 0.5;
  };
  const boxes = seen('button, summary, input, a, label, h1, h2, p, dt, dd, li, progress, .qr, .logo');
  const overlapping = [];
  for (const [index, one] of boxes.entries()) {
    for (const other of boxes.slice(index + 1)) {
      if (one.contains(other)) continue;
      const [a, b] = [rect(one), rect(other)];
      const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (width > 1 && height > 1) overlapping.push(name(one) + ' / ' + name(other));
    }
  }
  const isSmall = (element) => rect(element).width < 24 || rect(element).height < 24;
  return {
    sideways: root.scrollWidth - root.clientWidth,
    cutOff: seen('main, main *:not(input, bdi, b, strong, time, span, br)').filter(isCutOff).map(name),
    overlapping,
    small: seen('button, summary, input, a').filter(isSmall).map(name),
    pinned: seen('body *').filter((element) => ['fixed', 'sticky'].includes(getComputedStyle(element).position)).map(name),
  };
})()`;

export function measureLayout(page: Page): Promise<Layout> {
  return page.evaluate(MEASURE);
}

/**
 * Returns axe's findings, best practices included, as `rule: elements`. Includes contrasts that axe can't determine, except for colours
 * forced by the reader. Frames are separate pages. `colours` runs only the rules about colours.
 */
export async function findViolations(page: Page, only?: 'colours'): Promise<string[]> {
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(axe.source);
  const rules = only === 'colours' ? `runOnly: ['color-contrast', 'link-in-text-block'],` : '';
  return page.evaluate(
    `axe.run({ ${rules} resultTypes: ['violations', 'incomplete'], preload: false, iframes: false }).then(({ violations, incomplete }) => {
      const isForced = matchMedia('(forced-colors: active)').matches;
      const unknown = incomplete.filter(({ id }) => id === 'color-contrast' && !isForced);
      return [...violations, ...unknown].map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html).join(' '));
    })`,
  );
}

/** Opens every element that can be opened. */
export async function openDetails(page: Page): Promise<void> {
  await page.evaluate(`for (const details of document.querySelectorAll('details')) details.open = true`);
}

const ENTERED = { fee: '1.5', paste: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', transaction: 'b4'.repeat(32) };

/** Fills in and submits every form on the page, and waits for the answers. Needs the script, and open details. */
export async function askEverything(page: Page): Promise<void> {
  for (const [field, text] of Object.entries(ENTERED)) {
    const input = page.locator(`#${field}-field`);
    if (!(await input.isVisible())) continue;
    await input.fill(text);
    await input.press('Enter');
    await page.locator(`#${field}-answer p`).first().waitFor();
  }
}
