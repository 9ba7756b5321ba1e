/** @typedef {import('../../answers.ts').Connection} Connection */
/** @typedef {'disconnect' | 'replace' | 'patience' | 'remove'} Change */
import { asError, ask } from '/console/api.js';
import { badgeOf, isOfPeople, outcomeOf, STATE } from '/console/connections/connection-labels.js';
import { LeaveDialog } from '/console/connections/leave-dialog.js';
import { html, useEffect, useState } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Id } from '/console/shell/copy.js';
import { Ago, day } from '/console/shell/time.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

/**
 * `may`: whether the viewer may connect. `wanted`: whether a link asks to connect this one. `reload()` reads the connections again.
 *
 * @param {{ connection: Connection, may: boolean, wanted: boolean, change: (what: Change) => void, reload: () => void }} props
 */
export function ConnectionRow({ connection, may, wanted, change, reload }) {
  const { id, label, platform, state, connects_by, oauth, failing } = connection;
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(/** @type {Error | undefined} */ (undefined));
  const [leavingTo, setLeavingTo] = useState(/** @type {string | undefined} */ (undefined));
  const name = visibleLine(label);
  useEffect(() => {
    // After the browser's Back button the page is restored as it was left (from the back/forward cache).
    const back = (/** @type {PageTransitionEvent} */ { persisted }) => persisted && stay();
    addEventListener('pageshow', back);
    return () => removeEventListener('pageshow', back);
  }, []);
  const stay = () => {
    setBusy(false);
    setLeavingTo(undefined);
  };
  const connect = async () => {
    if (busy) return;
    setBusy(true);
    setProblem(undefined);
    try {
      const { authorization_url } = await ask('POST', `/owner/connections/${id}/oauth/start`, {});
      setLeavingTo(authorization_url);
    } catch (error) {
      setProblem(asError(error));
      setBusy(false);
    }
  };
  return html`<li class="row" data-connection=${id} data-state=${state} data-wanted=${wanted}>
    <div class="what">
      <p class="name"><strong class="theirs">${name}</strong> <${OutcomeBadge} connection=${connection} /></p>
      <p class="small quiet">Platform <code class="theirs">${platform}</code>${connection.default && ' · used where a grant names no connection'}</p>
      <${About} connection=${connection} />
      ${failing && html`<p class="small why failing">It has got no token since ${day(failing.since)}: <span class="theirs">${visibleLine(failing.detail)}</span> Calls that need one try again.</p>`}
      ${may && connection.redirect_uri !== null && html`<details class="elsewhere redirect-uri"><summary class="small quiet">Its redirect URI</summary><p class="small"><${Id} id=${connection.redirect_uri} what="the redirect URI" /></p></details>`}
      <${OutcomeDetail} connection=${connection} />
      ${wanted && state !== 'connected' && html`<p class="small why">An agent's call needs this connection.</p>`}
      ${problem && html`<p class="notice" data-kind="bad" role="alert">${problem.message}</p>`}
    </div>
    <div class="buttons">
      ${may && state !== 'not_connected' && html`<${TestButton} connection=${connection} tested=${reload} />`}
      ${
        may &&
        connects_by === 'oauth' &&
        html`<button type="button" class=${`compact connect ${state === 'connected' || isOfPeople(connection) ? '' : 'primary'}`} disabled=${busy} onClick=${connect}>
          ${busy ? 'Redirecting…' : state === 'not_connected' ? 'Connect' : 'Reconnect'}<span class="unseen"> ${name}</span>
        </button>`
      }
      ${
        may &&
        oauth &&
        html`<button type="button" class="compact danger disconnect" onClick=${() => change('disconnect')}>Disconnect…<span class="unseen"> ${name}</span></button>`
      }
      ${
        may &&
        connects_by === 'secret' &&
        html`<button type="button" class="compact replace" onClick=${() => change('replace')}>${state === 'not_connected' ? 'Give it a secret…' : 'Replace the secret…'}<span class="unseen"> ${name}</span></button>`
      }
      ${may && html`<button type="button" class="compact settings" onClick=${() => change('patience')}>Settings…<span class="unseen"> ${name}</span></button>`}
      ${may && html`<button type="button" class="compact danger remove" onClick=${() => change('remove')}>Remove…<span class="unseen"> ${name}</span></button>`}
    </div>
    ${leavingTo && html`<${LeaveDialog} connection=${connection} url=${leavingTo} onClose=${stay} />`}
  </li>`;
}

/** @param {{ connection: Connection }} props */
function About({ connection }) {
  const { state, connects_by, oauth, upstream_scopes, secret_from, failing } = connection;
  if (connects_by === 'app')
    return html`<p class="small quiet">${state === 'not_connected' ? 'No installation of an App is set yet.' : state === 'connected' ? 'It gets a token as an App for each call.' : 'The platform issued no token to its App.'}</p>`;
  if (connects_by === 'secret' || (!oauth && state !== 'not_connected'))
    return html`<p class="small quiet">
      ${state === 'not_connected' ? 'It has no secret yet.' : state === 'reauth_needed' && !failing ? 'The platform refused its secret' : 'It uses a secret'}${secret_from && html` from <code class="theirs">${visibleLine(secret_from)}</code>`}${state !== 'not_connected' && '.'}
    </p>`;
  if (isOfPeople(connection))
    return html`<p class="small quiet">People give tokens of their own for it. It needs none itself.</p>`;
  if (!oauth) return html`<p class="small quiet">An admin connects it, on the platform's consent page.</p>`;
  const account = oauth.account === null ? 'an account that the platform does not name' : visibleLine(oauth.account);
  return html`
    <p class="small">As <strong class="theirs account">${account}</strong>, since ${day(oauth.connected_at)}${oauth.refreshes ? '' : oauth.expires_at ? `, until ${day(oauth.expires_at)}` : ''}.</p>
    ${
      oauth.rejected &&
      html`<p class="small why">Its authorization server rejects the broker's client (<code class="theirs">${visibleLine(oauth.rejected.error)}</code>): correct client_id, client_secret or scopes in the governance file.</p>`
    }
    ${
      upstream_scopes &&
      html`<p class="small quiet scopes">Granted: ${
        upstream_scopes.length === 0
          ? 'the platform lists no scopes'
          : upstream_scopes.map((scope, at) => html`${at > 0 && ', '}<code class="theirs">${visibleLine(scope)}</code>`)
      }</p>`
    }
  `;
}

/** What is known about a connection's state, in its row. @param {{ connection: Connection }} props */
function OutcomeBadge({ connection }) {
  const { kind, words, at } = badgeOf(connection);
  return html`<span class="badge" data-kind=${kind}>${words}${at && html` <${Ago} at=${at} />`}</span>`;
}

/** The result of the last test or use, in words, and which scopes need further consent at the platform. @param {{ connection: Connection }} props */
function OutcomeDetail({ connection }) {
  const { state, lacks_consent_for: lacking } = connection;
  const outcome = state === 'not_connected' ? undefined : outcomeOf(connection);
  return html`
    ${outcome && html`<p class="small ${outcome.kind === 'bad' ? 'why' : 'quiet'} outcome">${visibleLine(outcome.detail)}${STATE[state] && html` (<${Ago} at=${outcome.at} />)`}</p>`}
    ${
      lacking.length > 0 &&
      html`<p class="small why lacking">The platform has not consented to what these scopes need: ${lacking.map((scope, at) => html`${at > 0 && ', '}<code class="theirs">${visibleLine(scope)}</code>`)}. Calls with them are refused until it is connected again with more.</p>`
    }
  `;
}

/**
 * Tests the credential with a harmless request to the platform. `tested()` is called when the result is stored.
 *
 * @param {{ connection: Connection, tested: () => void }} props
 */
function TestButton({ connection: { id, label }, tested }) {
  const announce = useAnnounce();
  const { busy, problem, run } = useDoing();
  const name = visibleLine(label);
  const test = () =>
    run(async () => {
      const { ok, detail } = await ask('POST', `/owner/connections/${id}/test`, {});
      // The row shows the result, too; this announcement is for screen readers.
      announce(`“${name}”: ${detail}`, ok ? 'good' : 'wait');
      tested();
    });
  return html`<button type="button" class="compact test" aria-disabled=${busy} onClick=${test}>
      ${busy ? 'Testing…' : 'Test'}<span class="unseen"> ${name}</span>
    </button>
    <${Problem} problem=${problem} />`;
}
