// Offers a signed-in owner without a passkey to add one.
import { asError } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { enrol, suggestedName, withoutPasskeys } from '/console/passkeys/ceremony.js';
import { canDo, useProvider } from '/console/passkeys/use-provider.js';
import { Reauthenticate, wantsReauthentication } from '/console/shell/reauthenticate.js';

/** @param {{ done: () => Promise<unknown> }} props */
export function Offer({ done }) {
  const provider = useProvider();
  const [said, setSaid] = useState(/** @type {string | undefined} */ (undefined));
  const [tooOld, setTooOld] = useState(/** @type {Error | undefined} */ (undefined));
  if (withoutPasskeys()) return null;
  const add = () =>
    enrol(suggestedName()).then(
      ({ device_name }) => {
        setSaid(`“${device_name}” can ${canDo(provider)} from now on.`);
        return done();
      },
      (thrown) => {
        const error = asError(thrown);
        if (wantsReauthentication(error)) setTooOld(error);
        else setSaid(error.message);
      },
    );
  return html`<aside class="sheet offer">
    <div><h2>Decide with a passkey</h2>
      <p class="quiet small">${
        provider === null
          ? 'With a passkey on this device you need not sign in next time.'
          : 'A decision with a passkey of this device is recorded with that passkey.'
      } ${provider && 'You can then decide calls of agents that you own without signing in.'}</p></div>
    <button type="button" onClick=${add}>Add a passkey</button>
    ${tooOld && html`<${Reauthenticate} error=${tooOld} />`}
    <p class="small" role="status">${said}</p>
  </aside>`;
}
