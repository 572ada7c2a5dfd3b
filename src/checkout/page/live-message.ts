import { createHash } from 'node:crypto';
import type { UnixMs } from '../../domain/time.ts';
import { PART_NAMES, type PartName, partKey, renderPart, titleOf } from './page-parts.ts';
import { type LinkPage, lookOf, type PageState, shopStateOf } from './page-state.ts';

/** Tells the script of a page that something changed: each part that differs, as HTML. */
export type LiveMessage = {
  version: string;
  state: PageState;
  shopState: ReturnType<typeof shopStateOf>;
  title: string;
  /** The time here in milliseconds, because the clock of the device may be wrong. */
  now: number;
  parts: Partial<Record<PartName, string>>;
};

/** The parts of `after` that differ from those of `before`; all of them where that is `null`. */
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

/** Changes exactly when the shown content changes, but for the clock that runs down. 16 hex characters. */
export function versionOf(page: LinkPage): string {
  const look = lookOf(page);
  const keys = PART_NAMES.map((name) => partKey(name, page, look));
  return createHash('sha256').update(keys.join('\n')).digest('hex').slice(0, 16);
}
