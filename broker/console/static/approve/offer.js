// Adding a passkey, for whoever is signed in without one.
import { asError } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { enrol, suggestedName, withoutPasskeys } from '/console/passkeys/ceremony.js';

/** @param {{ done: () => Promise<unknown> }} props */
export function Offer({ done }) {
  const [said, setSaid] = useState(/** @type {string | undefined} */ (undefined));
  if (withoutPasskeys()) return null;
  const add = () =>
    enrol(suggestedName()).then(
      ({ device_name }) => {
        setSaid(`“${device_name}” can decide and sign in from now on.`);
        return done();
      },
      (thrown) => setSaid(asError(thrown).message),
    );
  return html`<aside class="sheet offer">
    <div><h2>Decide with a passkey</h2>
      <p class="quiet small">With a passkey on this device you need not sign in next time.</p></div>
    <button type="button" onClick=${add}>Add a passkey</button>
    <p class="small" role="status">${said}</p>
  </aside>`;
}
