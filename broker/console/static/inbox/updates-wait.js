// The note about updates of built-in platforms, in the inbox since admins open it daily: an update may bring rules that refuse, mask or limit more.
import { html } from '/console/html.js';
import { useLoaded } from '/console/shell/loaded.js';
import { Link } from '/console/shell/router.js';

/** Updates only come with a release of the broker. */
const INTERVAL_MS = 3_600_000;

/** For admins. Renders nothing when no update exists; errors are ignored, since the inbox itself reports an unavailable broker. */
export function UpdatesWait() {
  const { answer } = useLoaded('/owner/platforms', INTERVAL_MS);
  const count = answer?.platforms.filter((one) => one.update_available).length ?? 0;
  if (count === 0) return null;
  return html`<p class="notice" data-kind="wait" id="updates-wait">
    <span>${count === 1 ? 'A platform has' : `${count} platforms have`} the manifest of an earlier release. This one's may refuse, mask or limit more of what agents do.</span>
    <${Link} to="/console/connections" class="button compact">Look<//>
  </p>`;
}
