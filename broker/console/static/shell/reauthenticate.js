// For actions that need more than a session: the owner proves their identity again, and continues here.
import { asError, ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { keepPlace } from '/console/place.js';

/**
 * Whether the broker demands a fresh sign-in; also as the cause of a failed passkey ceremony.
 *
 * @param {(Error & { code?: string }) | undefined} error
 */
export function wantsReauthentication(error) {
  const cause = /** @type {{ code?: string } | undefined} */ (error?.cause);
  return (error?.code ?? cause?.code) === 'reauthentication_required';
}

/** Navigates to sign-in, which leads back to this page. Throws Refused or Unreachable. */
async function signInAgain() {
  const options = await ask('GET', '/owner/sign-in-options', undefined, { signIn: false });
  keepPlace();
  if (options.method === 'local') return location.assign('/console/sign-in');
  const to = new URL(options.start_url);
  to.searchParams.set('page', location.pathname + location.search);
  to.searchParams.set('reauthenticate', '1');
  location.assign(to);
}

/**
 * Explains the demand, with the ways to meet it. `byPasskey` continues with a passkey; undefined when no passkey is accepted here.
 *
 * @param {{ error: Error, byPasskey?: (() => void) | undefined }} props
 */
export function Reauthenticate({ error, byPasskey }) {
  const [problem, setProblem] = useState(/** @type {Error | undefined} */ (undefined));
  const again = () => signInAgain().catch((thrown) => setProblem(asError(thrown)));
  return html`<div class="notice stack" data-kind="wait" role="alert" id="reauthenticate">
    <p>${(problem ?? error).message}</p>
    <div class="buttons">
      ${byPasskey && html`<button type="button" class="primary" id="use-passkey" onClick=${byPasskey}>Use a passkey</button>`}
      <button type="button" id="sign-in-again" onClick=${again}>Sign in again</button>
    </div>
  </div>`;
}
