// How long a held call waits, and what a passkey has to show.
/** @typedef {import('../../answers.ts').Organisation} Organisation */
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { checkedTo, valueTo } from '/console/shell/fields.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';

/** A file may say any number of seconds. */
const inMinutes = (/** @type {number} */ seconds) => String(Math.round((seconds / 60) * 100) / 100);

/** @param {{ organisation: Organisation, may: boolean, changed: () => void }} props */
export function Approvals({
  organisation: { approval_ttl_seconds: ttl, require_user_verification: verified },
  may,
  changed,
}) {
  const [minutes, setMinutes] = useState(inMinutes(ttl));
  const [verify, setVerify] = useState(verified);
  const { busy, problem, run } = useDoing();
  const announce = useAnnounce();
  const save = (/** @type {Event} */ event) => {
    event.preventDefault();
    const seconds = minutes === inMinutes(ttl) ? ttl : Math.round(Number(minutes) * 60);
    run(async () => {
      await ask('POST', '/owner/organisation', { approval_ttl_seconds: seconds, require_user_verification: verify });
      announce('The settings of approvals are changed.', 'good');
      changed();
    });
  };
  const same = minutes === inMinutes(ttl) && verify === verified;
  return html`<section class="sheet" aria-labelledby="approvals">
    <h2 id="approvals">Approvals</h2>
    <p>A held call waits ${inMinutes(ttl)} min for somebody to decide, then it is over. Those that wait already keep their time. ${
      verified
        ? 'A passkey counts only if the device checked who holds it, by finger, face or PIN.'
        : 'A passkey counts also if the device only checked that somebody touched it.'
    }</p>
    ${
      may &&
      html`<form onSubmit=${save}>
        <div class="rule">
          <label for="ttl">Minutes that a held call waits</label>
          <input id="ttl" type="number" min="1" max="10080" step="any" required value=${minutes} onInput=${valueTo(setMinutes)} />
        </div>
        <label class="choice"><input type="checkbox" id="verify" checked=${verify} onChange=${checkedTo(setVerify)} /><span>A passkey counts only with finger, face or PIN</span></label>
        <div class="buttons"><button type="submit" id="save-approvals" disabled=${busy || same}>Save</button></div>
      </form>`
    }
    <${Problem} problem=${problem} />
  </section>`;
}
