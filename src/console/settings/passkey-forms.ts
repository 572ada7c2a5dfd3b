import { AppError } from '../../domain/errors.ts';
import { notVerified } from '../../operator/people/passkey-proof.ts';
import {
  addPasskey,
  listOwnPasskeys,
  type PasskeyView,
  removePasskey,
  requestPasskey,
} from '../../operator/subjects/sign-in.ts';
import { html } from '../../web/html.ts';
import { addForm } from '../forms/add-form.ts';
import type { Form } from '../forms/form.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import { outside } from '../page/pieces.ts';
import type { Routes } from '../page/routes.ts';

/** Making and removing the passkeys of whoever asks. */
export function addPasskeyForms(routes: Routes, deps: ConsoleDeps): void {
  addForm(routes, deps, addingForm(deps));
  addForm(routes, deps, removalForm(deps));
}

const ME = '/settings/me';

/** The subject is what the browser is asked to make one by. */
function addingForm(deps: ConsoleDeps): Form<object, { passkey: unknown; name: string }, unknown> {
  return {
    ...{ action: 'addPasskey', path: `${ME}/passkeys/new` },
    find: async ({ request }) => {
      const session = await deps.findSession(request);
      if (session === null) throw new AppError('NOT_FOUND', 'passkeys are those of people who have signed in');
      const options = await requestPasskey(deps.people(), session);
      if (options !== null) return options;
      throw new AppError(
        'CONFLICT',
        'browsers make passkeys for names, and this console is at an IP address: set QUITTANCE_CONSOLE_URL to its name',
      );
    },
    show: (_visit, options) => ({
      ...{ title: 'Add a passkey', about: null, button: 'Make a passkey', back: ME },
      consequence: html`<p>The browser asks for your fingerprint, face or PIN, or for a security key. From then on it signs you in by itself; what you sign in with now goes on working.</p><p class="hint">Where no button follows, this browser knows no passkeys, or runs no JavaScript.</p>`,
      fields: [
        { name: 'created', label: 'Passkey', kind: 'passkey', options },
        {
          name: 'name',
          label: 'What you call it',
          kind: 'line',
          value: 'This device',
          more: html` maxlength="100" required`,
        },
      ],
    }),
    read: ({ created = '', name = '' }) => addPasskey.read({ passkey: parse(created), name }, deps.now()),
    run: (actor, wanted) => addPasskey.run(deps.people(), actor, wanted),
    done: () => ({ goTo: `${ME}?done=passkey-added` }),
  };
}

/** Errors: `INVALID_ARGUMENT`. */
function parse(created: string): unknown {
  try {
    return JSON.parse(created);
  } catch {
    throw notVerified();
  }
}

type Kept = { passkey: PasskeyView; others: number };

function removalForm(deps: ConsoleDeps): Form<Kept, { passkeyId: string }, unknown> {
  return {
    ...{ action: 'removePasskey', path: `${ME}/passkeys/:passkeyId/remove` },
    find: async ({ visit, request }) => {
      const { passkeyId } = request.params as { passkeyId?: string };
      const { data } = await listOwnPasskeys.run(deps, visit.actor, {});
      const passkey = data.find((each) => each.passkeyId === passkeyId);
      if (passkey === undefined) throw new AppError('NOT_FOUND', 'there is no such passkey of yours');
      return { passkey, others: data.length - 1 };
    },
    show: (_visit, { passkey, others }) => ({
      ...{ title: 'Remove a passkey', about: null, button: 'Remove it', back: ME, fields: [] },
      consequence: html`<p>${outside(passkey.name, 100)} signs you in no more. You keep ${others === 1 ? '1 other passkey' : `${others} other passkeys`}, and a password if you have one. Sessions that it opened go on: end those that you do not know.</p><p class="hint">Your device still offers it until you delete it there.</p>`,
    }),
    read: (_filled, { passkey: { passkeyId } }) => removePasskey.read({ passkeyId }, deps.now()),
    run: (actor, wanted) => removePasskey.run(deps.people(), actor, wanted),
    done: () => ({ goTo: `${ME}?done=passkey-removed` }),
  };
}
