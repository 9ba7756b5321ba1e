// The notices page: how owners are notified of what waits, on their own devices and on channels of the organisation.
import { html } from '/console/html.js';
import { Channels } from '/console/notices/channels.js';
import { Devices } from '/console/notices/devices.js';
import { Reach } from '/console/notices/reach.js';

export const NoticesPage = () => html`
  <div class="page-head"><h1>Notices</h1></div>
  <div class="notices stack">
    <p class="quiet">You get a notice when a call waits for a decision, or something else needs a person. A notice says what it is about and links to the
      page where you decide; it decides nothing by itself.</p>
    <${Devices} />
    <${Reach} />
    <${Channels} />
  </div>
`;
