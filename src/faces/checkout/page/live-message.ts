import { createHash } from 'node:crypto';
import type { UnixMs } from '../../../core/domain/time.ts';
import { PART_NAMES, type PartName, partKey, renderPart, titleOf } from './page-parts.ts';
import { type LinkPage, lookOf, type PageState, shopStateOf } from './page-state.ts';

/** A message to the page's script, with each changed part's HTML. */
export type LiveMessage = {
  version: string;
  state: PageState;
  shopState: ReturnType<typeof shopStateOf>;
  title: string;
  /** The server's time in milliseconds, because the device's clock may be wrong. */
  now: number;
  parts: Partial<Record<PartName, string>>;
};

/** Returns the parts of `after` that differ from `before`, or all parts if `before` is `null`. */
export function composeMessage(before: LinkPage | null, after: LinkPage & { now: UnixMs }): LiveMessage {
  const [old, look] = [before && lookOf(before), lookOf(after)];
  const parts: LiveMessage['parts'] = {};
  for (const name of PART_NAMES) {
    if (before && old && partKey(name, before, old) === partKey(name, after, look)) continue;
    parts[name] = renderPart(name, after, look).html;
  }
  return {
    ...{ version: versionOf(after), state: look.state, shopState: shopStateOf(after) },
    ...{ title: titleOf(after, look), now: after.now, parts },
  };
}

/**
 * Returns 16 hex characters that change if and only if the visible content changes, except for the countdown, or if the state for shops
 * changes.
 */
export function versionOf(page: LinkPage): string {
  const look = lookOf(page);
  const keys = PART_NAMES.map((name) => partKey(name, page, look));
  return createHash('sha256')
    .update([shopStateOf(page), ...keys].join('\n'))
    .digest('hex')
    .slice(0, 16);
}
