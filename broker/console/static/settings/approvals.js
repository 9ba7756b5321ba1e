// The settings of approvals: how long a held call waits, and the requirements for passkeys.
/** @typedef {import('../../answers.ts').Organisation} Organisation */
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { useProvider } from '/console/passkeys/use-provider.js';
import { useAnnounce } from '/console/shell/announce.js';
import { checkedTo, valueTo } from '/console/shell/fields.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

/** @type {Record<'approvers' | 'agents_owner', string>} */
const WHO = { approvers: 'every approver and admin', agents_owner: 'the agent’s owner alone' };

/** Fractions are possible: a governance file may set any number of seconds. */
const inMinutes = (/** @type {number} */ seconds) => String(Math.round((seconds / 60) * 100) / 100);

const DAY = 24 * 60;

/** Formats seconds in the largest unit that is exact: `1 day`, `36 h`, `90 min`. */
function formatExactly(/** @type {number} */ seconds) {
  const minutes = seconds / 60;
  if (minutes % DAY === 0) return minutes === DAY ? '1 day' : `${minutes / DAY} days`;
  return minutes % 60 === 0 ? `${minutes / 60} h` : `${inMinutes(seconds)} min`;
}

/** @param {{ organisation: Organisation, may: boolean, changed: () => unknown }} props */
export function Approvals({
  organisation: { approval_ttl_seconds: ttl, require_user_verification: verified, passkey_deciders: deciders },
  may,
  changed,
}) {
  // Only what was written: another admin may change the other settings while this page is open.
  const [written, write] = useState(
    /** @type {{ minutes?: string, verify?: boolean, who?: Organisation['passkey_deciders'] }} */ ({}),
  );
  const { minutes = inMinutes(ttl), verify = verified, who = deciders } = written;
  const provider = useProvider();
  const { busy, problem, run } = useDoing();
  const announce = useAnnounce();
  const save = (/** @type {Event} */ event) => {
    event.preventDefault();
    run(async () => {
      await ask('POST', '/owner/organisation', {
        ...(minutes !== inMinutes(ttl) && { approval_ttl_seconds: Math.round(Number(minutes) * 60) }),
        ...(verify !== verified && { require_user_verification: verify }),
        ...(who !== deciders && { passkey_deciders: who }),
      });
      announce('The settings of approvals are changed.', 'good');
      await changed();
      write({});
    });
  };
  const same = minutes === inMinutes(ttl) && verify === verified && who === deciders;
  const byDefault = provider ? WHO.agents_owner : WHO.approvers;
  return html`<section class="sheet" aria-labelledby="approvals">
    <h2 id="approvals">Approvals</h2>
    <p>A held call waits ${formatExactly(ttl)} for somebody to decide, then it expires. A change applies to calls that are held from then on. ${
      verified
        ? 'A passkey counts only if the device checked who holds it, by finger, face or PIN.'
        : 'A passkey counts also if the device only checked that somebody touched it.'
    } Without signing in, from the link of a call, it is decided with a passkey by ${deciders === 'default' ? byDefault : WHO[deciders]}.</p>
    ${
      may &&
      html`<form onSubmit=${save}>
        <div class="rule">
          <label for="ttl">Minutes that a held call waits</label>
          <input id="ttl" type="number" min="1" max="10080" step="any" required value=${minutes} onInput=${valueTo((/** @type {string} */ text) => write({ ...written, minutes: text }))} />
        </div>
        <div class="field"><label for="deciders">Who decides with a passkey, without signing in</label>
          <select id="deciders" onChange=${valueTo((/** @type {string} */ value) => write({ ...written, who: /** @type {Organisation['passkey_deciders']} */ (value) }))}>
            <option value="default" selected=${who === 'default'}>Default</option>
            <option value="approvers" selected=${who === 'approvers'}>Every approver and admin</option>
            <option value="agents_owner" selected=${who === 'agents_owner'}>Only the agent’s owner</option>
          </select>
          <p class="hint">The default is ${byDefault}${provider ? ', because owners sign in at an identity provider' : ''}.</p>
          ${provider && who === 'approvers' && html`<p class="hint">Somebody whose account at <span class="theirs">${visibleLine(provider)}</span> was closed can still decide with a passkey until they are removed here.</p>`}</div>
        <label class="choice"><input type="checkbox" id="verify" checked=${verify} onChange=${checkedTo((checked) => write({ ...written, verify: checked }))} /><span>A passkey counts only with finger, face or PIN</span></label>
        <div class="buttons"><button type="submit" id="save-approvals" disabled=${busy || same}>Save</button></div>
      </form>`
    }
    <${Problem} problem=${problem} />
  </section>`;
}
