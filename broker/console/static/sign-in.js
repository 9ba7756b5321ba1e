// Where a sign-in link leads, and everybody without a session.
/** @typedef {import('../answers.ts').SignInOptions} SignInOptions */
import { asError, ask } from '/console/api.js';
import { byId, html, render, useEffect, useState } from '/console/html.js';
import { takePlace } from '/console/place.js';

/** The token stands behind `#`, so it never reached a server or a log; it is taken out of the address at once. */
function takeToken() {
  const token = location.hash.slice(1);
  history.replaceState(null, '', '/console/sign-in');
  return token;
}

function SignIn() {
  const [state, setState] = useState(
    /** @type {{ kind: 'asking' | 'busy' } | { kind: 'failed', message: string }} */ ({ kind: 'asking' }),
  );
  const [options, setOptions] = useState(/** @type {SignInOptions | undefined} */ (undefined));
  const begin = () => {
    const token = takeToken();
    if (!token) return;
    setState({ kind: 'busy' });
    ask('POST', '/owner/sign-in', { token }, { signIn: false }).then(
      () => location.replace(takePlace()),
      (thrown) => setState({ kind: 'failed', message: asError(thrown).message }),
    );
  };
  useEffect(() => {
    begin();
    ask('GET', '/owner/sign-in-options').then(setOptions, () => setOptions({ method: 'local' }));
    // A link that is opened on this very page changes nothing but what stands behind `#`.
    const changed = () => location.hash && begin();
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  return html`
    <div class="sheet card">
      <p class="brand"><img src="/console/icon.svg" alt="" width="28" height="28" />Agent Broker</p>
      <h1>${state.kind === 'busy' ? 'Signing you in…' : 'Sign in'}</h1>
      <div role="status" id="notice">
        ${state.kind === 'failed' && html`<p class="notice" data-kind="bad">${state.message}</p>`}
      </div>
      ${state.kind !== 'busy' && options && html`<${options.method === 'oidc' ? AtProvider : ByLink} options=${options} />`}
    </div>
  `;
}

const ByLink = () => html`
  <p>Open a sign-in link. Make one on the machine of the broker:</p>
  <pre class="command">npx agent-broker owner link</pre>
  <p class="quiet small">It works once, within 15 minutes, in the browser where you open it.</p>
`;

/** @param {{ options: Extract<SignInOptions, { method: 'oidc' }> }} props */
function AtProvider({ options: { start_url, provider } }) {
  const leave = (/** @type {Event} */ event) => {
    event.preventDefault();
    const to = new URL(start_url);
    to.searchParams.set('page', takePlace());
    location.assign(to);
  };
  return html`
    <p>Your organisation signs in at its identity provider.</p>
    <a class="button primary" id="at-provider" href=${start_url} onClick=${leave}>Sign in at ${provider}</a>
  `;
}

render(html`<${SignIn} />`, byId('page'));
