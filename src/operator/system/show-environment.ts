import type { Actor } from '../actor.ts';
import type { SettingListView, SettingView } from './views.ts';

/** What the environment says to the process that answers, as it was read at its start. It holds no secret. */
export async function showEnvironment(
  { settings }: { settings: readonly SettingView[] },
  _actor: Actor,
): Promise<SettingListView> {
  return { data: [...settings] };
}
