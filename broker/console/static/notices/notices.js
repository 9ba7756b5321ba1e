// The notices page: how owners are notified of what waits, on their own devices and on channels of the organisation.
import { html } from '/console/html.js';
import { Channels } from '/console/notices/channels.js';
import { Devices } from '/console/notices/devices.js';
import { Command } from '/console/shell/command.js';
import { useLoaded } from '/console/shell/loaded.js';

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

// Whether a phone could open the links in notices, and how to make the broker reachable.
const INTERVAL_MS = 60_000;

function Reach() {
  const { answer } = useLoaded('/owner/reach', INTERVAL_MS);
  if (!answer) return null;
  const { base_url: base, warnings } = answer;
  const port = new URL(base).port || '3000';
  return html`<section class="sheet" aria-labelledby="reach-head" id="reach">
    <h2 id="reach-head">Reach it from your phone</h2>
    <p>Links lead to <code class="theirs">${base}</code>.</p>
    ${warnings.map(({ code, text }) => html`<p class="notice" data-kind="wait" data-warning=${code} key=${code}>${text}</p>`)}
    <details>
      <summary>How to</summary>
      <p>Give the broker an address that your phone can open, by https, and start it with that address as <code>BASE_URL</code>. For example by one of these:</p>
      <h3>Tailscale, for your own devices</h3>
      <${Command} text=${`tailscale serve --bg ${port}\nBASE_URL=https://MACHINE.TAILNET.ts.net TRUSTED_PROXIES=127.0.0.1 npx agent-broker serve`} />
      <h3>Cloudflare Tunnel, open to the internet</h3>
      <${Command} text=${`cloudflared tunnel --url http://localhost:${port}\nBASE_URL=https://WHAT-IT-PRINTS TRUSTED_PROXIES=127.0.0.1 npx agent-broker serve`} />
      <h3>A server of yours with Caddy, by SSH</h3>
      <${Command} text=${`ssh -N -R 127.0.0.1:${port}:127.0.0.1:${port} you@broker.acme.example\n# there: caddy reverse-proxy --from broker.acme.example --to 127.0.0.1:${port}\nBASE_URL=https://broker.acme.example TRUSTED_PROXIES=127.0.0.1 npx agent-broker serve`} />
      <p class="small quiet">nginx, Caddy and what else belongs to it: <a href="/docs/approvals#reach-it-from-your-phone">Reach it from your phone</a>.</p>
    </details>
  </section>`;
}
