// The consent page for an MCP client that asks for access: who it is, what it could do, and the decision of the signed-in owner.
/** @typedef {import('../../answers.ts').Consent} Question */
/** @typedef {import('../../answers.ts').ConsentDecision} ConsentDecision */
import { asError, ask, Refused } from '/console/api.js';
import { ConsentForm } from '/console/consent/consent-form.js';
import { byId, html, render, useEffect, useState } from '/console/html.js';
import { keepPlace } from '/console/place.js';

const place = /** @type {`/oauth/consent/${string}`} */ (location.pathname);

/**
 * @typedef {{ kind: 'loading' }
 *   | { kind: 'asked', asked: Question }
 *   | { kind: 'signed_out' | 'failed', message: string }
 *   | { kind: 'over', title: string }} State
 */

function Consent() {
  const [state, setState] = useState(/** @type {State} */ ({ kind: 'loading' }));
  const goOn = (/** @type {string} */ to, /** @type {string} */ title) => {
    setState({ kind: 'over', title });
    location.assign(to);
  };
  const look = () =>
    ask('GET', `${place}/request`, undefined, { signIn: false }).then(
      (asked) =>
        asked.decided
          ? goOn(asked.decided, 'Decided already')
          : setState((now) => (now.kind === 'asked' ? now : { kind: 'asked', asked })),
      (error) =>
        setState({
          kind: error instanceof Refused && error.status === 401 ? 'signed_out' : 'failed',
          message: asError(error).message,
        }),
    );
  useEffect(() => void look(), []);
  useEffect(() => {
    // After the owner signed in in another tab, the page continues when this tab is focused again.
    if (state.kind !== 'signed_out') return undefined;
    const seen = () => document.visibilityState === 'visible' && look();
    for (const sign of ['visibilitychange', 'focus']) addEventListener(sign, seen);
    return () => {
      for (const sign of ['visibilitychange', 'focus']) removeEventListener(sign, seen);
    };
  }, [state.kind]);
  const decide = async (/** @type {ConsentDecision} */ decision) => {
    try {
      const { location: to } = await ask('POST', `${place}/decision`, decision, { signIn: false });
      goOn(to, decision.allow ? 'Connected' : 'Not connected');
    } catch (error) {
      // Decided in another tab, or here with a lost response: the application receives that earlier decision.
      const isConflict = error instanceof Refused && error.code === 'conflict';
      const now = isConflict ? await ask('GET', `${place}/request`, undefined, { signIn: false }) : undefined;
      if (!now?.decided) throw error;
      goOn(now.decided, 'Decided already');
    }
  };
  return html`
    <div class="sheet card" aria-busy=${state.kind === 'loading'}>
      <p class="brand"><img src="/console/icon.svg" alt="" width="28" height="28" />Agent Broker</p>
      ${state.kind === 'asked' && html`<${ConsentForm} asked=${state.asked} decide=${decide} />`}
      ${state.kind === 'signed_out' && html`<${SignedOut} />`}
      ${state.kind === 'failed' && html`<h1>Not connected</h1><p class="notice" data-kind="bad" role="alert">${state.message}</p>`}
      ${state.kind === 'over' && html`<h1>${state.title}</h1><p role="status">Going back to the application. You may close this page.</p>`}
    </div>
  `;
}

function SignedOut() {
  const leave = (/** @type {Event} */ event) => {
    event.preventDefault();
    keepPlace();
    location.assign('/console/sign-in');
  };
  return html`
    <h1>Sign in to connect</h1>
    <p>An application asks for access to this broker. Sign in to see which one, and to decide.</p>
    <p><a class="button primary" id="sign-in" href="/console/sign-in" onClick=${leave}>Sign in</a></p>
    <p class="quiet small">Or sign in to the console in another tab of this browser, and come back to this page: it continues automatically.</p>
  `;
}

render(html`<${Consent} />`, byId('page'));
