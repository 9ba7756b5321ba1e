// The sign-in page, for sign-in links and everybody without a session.
/** @typedef {import('../answers.ts').SignInOptions} SignInOptions */
import { asError, ask, Refused } from '/console/api.js';
import { byId, html, render, useEffect, useState } from '/console/html.js';
import { signInWithPasskey, wasCancelled, withoutPasskeys } from '/console/passkeys/ceremony.js';
import { findPlace, keepNamedPlace, takePlace, takeUndone } from '/console/place.js';
import { Command } from '/console/shell/command.js';
import { visibleLine } from '/console/visible.js';

/** Takes the token from the fragment of the address, which is never sent to a server or logged, and removes it from the address immediately. */
function takeToken() {
  const token = location.hash.slice(1);
  history.replaceState(null, '', '/console/sign-in');
  return token;
}

function SignIn() {
  const [state, setState] = useState(
    /** @type {{ kind: 'asking' | 'busy' } | { kind: 'other', message: string, token: string } | { kind: 'failed', message: string, cancelled?: boolean, signedInAs?: string }} */ ({
      kind: 'asking',
    }),
  );
  const [undone] = useState(takeUndone);
  const [options, setOptions] = useState(/** @type {SignInOptions | undefined} */ (undefined));
  const begin = () => {
    const token = takeToken();
    if (token) signInWith({ token });
  };
  const signInWith = (/** @type {{ token: string, instead?: true }} */ link) => {
    setState({ kind: 'busy' });
    ask('POST', '/owner/sign-in', link, { signIn: false }).then(
      () => location.replace(takePlace()),
      async (thrown) => {
        // Another owner is signed in: the link may come from somebody who wants to be sent what this person enters.
        if (thrown instanceof Refused && thrown.code === 'conflict')
          return setState({ kind: 'other', message: thrown.message, token: link.token });
        // A person who opens a used link again is often already signed in. The page does not continue silently, since the link may be another owner's.
        const me = await ask('GET', '/owner/me', undefined, { signIn: false }).catch(() => undefined);
        setState({ kind: 'failed', message: asError(thrown).message, ...(me && { signedInAs: me.email }) });
      },
    );
  };
  const byPasskey = () => {
    setState({ kind: 'busy' });
    signInWithPasskey().then(
      () => location.replace(takePlace()),
      (thrown) => setState({ kind: 'failed', message: asError(thrown).message, cancelled: wasCancelled(thrown) }),
    );
  };
  useEffect(() => {
    begin();
    ask('GET', '/owner/sign-in-options').then(setOptions, () => setOptions({ method: 'local' }));
    // A link opened on this page changes only the fragment, which does not reload the page.
    const changed = () => location.hash && begin();
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  return html`
    <div class="sheet card">
      <p class="brand"><img src="/console/icon.svg" alt="" width="28" height="28" />Agent Broker</p>
      <h1>${state.kind === 'busy' ? 'Signing you in…' : 'Sign in'}</h1>
      <div role="status" id="notice">
        ${undone && html`<p class="notice" data-kind="wait" id="undone">You were no longer signed in, so nothing was decided or changed just now. Sign in, and do it again.</p>`}
        ${state.kind === 'other' && html`<p class="notice theirs" data-kind="wait" id="other-owner">${visibleLine(state.message)}</p>`}
        ${state.kind === 'failed' && html`<p class="notice" data-kind=${state.cancelled ? 'wait' : 'bad'}>${state.message}</p>`}
        ${
          state.kind === 'failed' &&
          state.signedInAs &&
          html`<p>You are signed in here as <strong class="theirs">${visibleLine(state.signedInAs)}</strong>.</p>
            <a class="button" id="go-on" href="/console">Go on to the console</a>`
        }
      </div>
      ${
        state.kind === 'other' &&
        html`<a class="button primary" id="stay" href="/console">Stay signed in</a>
          <button type="button" id="instead" onClick=${() => signInWith({ token: state.token, instead: true })}>Sign in with the link</button>`
      }
      ${state.kind !== 'busy' && state.kind !== 'other' && options && (options.method === 'oidc' ? html`<${AtProvider} options=${options} />` : html`<${Locally} byPasskey=${byPasskey} />`)}
    </div>
  `;
}

/** @param {{ byPasskey: () => void }} props */
function Locally({ byPasskey }) {
  const without = withoutPasskeys();
  return html`
    ${
      without
        ? html`<p class="quiet small">${without}</p>`
        : html`<button type="button" class="primary" id="by-passkey" onClick=${byPasskey}>Sign in with a passkey</button>
            <p class="quiet small">One that you added to this broker before, on this device or another one.</p>`
    }
    <section class="other-ways">
      <h2>Without a passkey</h2>
      <p>Ask an admin of your organisation for a sign-in link. It works once, within 15 minutes, in the browser where you open it.</p>
      <details>
        <summary>You run this broker yourself?</summary>
        <p class="small">Make a link on its machine:</p>
        <${Command} text="npx agent-broker owner link" />
      </details>
      <p class="quiet small">A passkey that signs nobody in may be an older one: sign in with a link, remove it under <em>Passkeys</em>, and add it again.</p>
    </section>
  `;
}

/** @param {{ options: Extract<SignInOptions, { method: 'oidc' }> }} props */
function AtProvider({ options: { start_url, provider } }) {
  const leave = (/** @type {Event} */ event) => {
    event.preventDefault();
    const to = new URL(start_url);
    // It stays stored: the person may come back with the browser's Back, and start again.
    to.searchParams.set('page', findPlace());
    location.assign(to);
  };
  return html`
    <p>Your organisation signs in at its identity provider.</p>
    <a class="button primary" id="at-provider" href=${start_url} onClick=${leave}>Sign in at ${provider}</a>
  `;
}

keepNamedPlace();
render(html`<${SignIn} />`, byId('page'));
