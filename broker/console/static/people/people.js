// Platforms with one token per person: counts and states, never identities; and the trusted issuers.
/** @typedef {import('../../answers.ts').PersonTokens} PersonTokens */
/** @typedef {import('/console/people/dialogs.js').Ending} Ending */
import { html, useState } from '/console/html.js';
import { callerOf } from '/console/people/caller.js';
import { ConfirmAccount, EndDialog } from '/console/people/dialogs.js';
import { Issuers } from '/console/people/issuers.js';
import { PlatformPeople } from '/console/people/platform.js';
import { valueTo } from '/console/shell/fields.js';
import { Empty, Failed, Loading, useLoaded } from '/console/shell/loaded.js';
import { mayChange, mayDecide, useOwner } from '/console/shell/owner.js';
import { Link } from '/console/shell/router.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';

const INTERVAL_MS = 10_000;

export function PeoplePage() {
  const owner = useOwner();
  return html`
    <div class="page-head"><h1>People</h1>
      <p class="small"><${Link} to="/console/connections">Connections<//></p></div>
    <div class="people stack">
      <p class="quiet">Platforms on which agents use the token of the person for whom they call. The identity of a person is not stored; the name of an account is shown only while it waits to be confirmed.</p>
      ${mayDecide(owner) ? html`<${ByPlatform} may=${mayChange(owner)} />` : html`<p class="quiet small">Your role is ${owner.role}: an approver sees how many there are.</p>`}
      <${Issuers} may=${mayChange(owner)} />
    </div>
  `;
}

/** @param {{ may: boolean }} props */
function ByPlatform({ may }) {
  const { answer, error, reload } = useLoaded('/owner/people?state=unconfirmed&limit=200', INTERVAL_MS);
  const [changes, setChanges] = useState(0);
  const [confirming, setConfirming] = useState(/** @type {PersonTokens | undefined} */ (undefined));
  const [ending, setEnding] = useState(/** @type {Ending | undefined} */ (undefined));
  const changed = () => {
    setChanges((count) => count + 1);
    reload();
  };
  const isAnyGiven = answer?.platforms.some(({ connections }) => connections.length > 0) ?? false;
  return html`
    ${error && html`<${Failed} error=${error} again=${reload} />`}
    ${!answer && !error && html`<${Loading} />`}
    ${answer?.platforms.length === 0 && html`<${NoPlatforms} may=${may} />`}
    ${answer?.next && html`<p class="quiet small" id="more-wait">The oldest ${answer.tokens.length} that wait are shown. More appear when these are confirmed or ended.</p>`}
    ${answer?.platforms.map(
      (platform) =>
        html`<${PlatformPeople} key=${platform.platform_id} platform=${platform} waiting=${answer.tokens.filter(({ platform_id: id }) => id === platform.platform_id)} changes=${changes} may=${may} confirm=${setConfirming} end=${setEnding} changed=${reload} />`,
    )}
    ${may && isAnyGiven && html`<${EndByName} key=${changes} end=${setEnding} />`}
    ${confirming && html`<${ConfirmAccount} one=${confirming} onClose=${() => setConfirming(undefined)} onDone=${changed} />`}
    ${ending && html`<${EndDialog} ending=${ending} onClose=${() => setEnding(undefined)} onDone=${changed} />`}
  `;
}

/** @param {{ end: (ending: Ending) => void }} props */
function EndByName({ end }) {
  const [name, setName] = useState('');
  const { problem, run } = useDoing();
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    await run(async () => {
      end({ words: 'All tokens that this person gave are ended, on all platforms.', what: { caller: callerOf(name) } });
    });
  };
  const all = () => end({ words: 'All tokens that people gave are ended, on all platforms.', what: { all: true } });
  return html`<section class="sheet" aria-labelledby="end-by-name">
    <h2 id="end-by-name">End the tokens of a person</h2>
    <form onSubmit=${submit}>
      <label for="person">What agents call the person; it is compared, and not stored</label>
      <input id="person" type="text" required autocomplete="off" spellcheck="false" placeholder="slack:U024BE7LH" value=${name} onInput=${valueTo(setName)} />
      <${Problem} problem=${problem} />
      <div class="buttons">
        <button type="submit" class="danger" id="end-person">End…</button>
        <button type="button" class="danger" id="end-all" onClick=${all}>End what everybody gave…</button>
      </div>
    </form>
  </section>`;
}

/** @param {{ may: boolean }} props */
const NoPlatforms = ({ may }) => html`
  <${Empty} title="No platform is connected by OAuth">
    <p>On platforms with OAuth people give tokens of their own. ${may ? html`<${Link} to="/console/connections/new">Connect an API<//> that takes it.` : 'An admin connects one.'}</p>
  <//>
`;
