import { AppError } from '../../domain/errors.ts';
import type { ActionName } from '../../operator/actions.ts';
import type { Page } from '../page/layout.ts';
import { readForm } from '../page/read-fields.ts';
import type { Asked, Routes } from '../page/routes.ts';

/** Adds what a form of one button (`oneClick`) is sent to. `run` says where to go on, or shows what came of it. Errors: `CONFLICT`, and its own, each with a page. */
export function addClick(
  { post }: Routes,
  path: string,
  action: ActionName,
  run: (asked: Asked) => Promise<string | Page>,
): void {
  post(path, action, async (asked) => {
    const { token } = readForm(asked.request, ['token']);
    const taken = asked.tokens.take(asked.visit.path, token);
    if (taken.kind === 'refused') throw new AppError('CONFLICT', taken.reason);
    const next = await run(asked);
    return typeof next === 'string' ? { goTo: next } : next;
  });
}
