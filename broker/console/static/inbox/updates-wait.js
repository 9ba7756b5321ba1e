// Updates of built-in platforms, told where an admin looks every day: they may bring what refuses, masks or limits more.
import { html } from '/console/html.js';
import { Link } from '/console/shell/router.js';
import { useLoaded } from '/console/shell/use-loaded.js';

/** They come with a release alone. */
const EVERY_MS = 3_600_000;

/** For admins. Nothing where there is none; whether the broker answers, the inbox itself says. */
export function UpdatesWait() {
  const { answer } = useLoaded('/owner/platforms', EVERY_MS);
  const count = answer?.platforms.filter((one) => one.update_available).length ?? 0;
  if (count === 0) return null;
  return html`<p class="notice" data-kind="wait" id="updates-wait">
    <span>${count === 1 ? 'A platform has' : `${count} platforms have`} the manifest of an earlier release. This one's may refuse, mask or limit more of what agents do.</span>
    <${Link} to="/console/connections" class="button compact">Look<//>
  </p>`;
}
