/** @typedef {import('../../answers.ts').Agent} Agent */
import { CONTAINED, describeCause, describePause } from '/console/agents/status-labels.js';
import { html } from '/console/html.js';
import { Ago } from '/console/shell/time.js';
import { visibleLine } from '/console/visible.js';

/**
 * What stops the agent from acting, and what ends that.
 *
 * @param {{ agent: Agent }} props
 */
export function StatusReason({
  agent: { status, status_cause, status_detail, status_since, breakers, contained, expires_at },
}) {
  if (contained === 'expired') return html`<p class="small why">It expired <${Ago} at=${expires_at} />.</p>`;
  if (contained && status === 'active') return html`<p class="small why">${CONTAINED[contained].why}</p>`;
  if (status === 'active') return breakers.map((breaker) => html`<p class="small why">${describePause(breaker)}</p>`);
  if (status === 'pending')
    return html`<p class="small why">
      It was approved <${Ago} at=${status_since} />, and starts when it collects its key. After an hour it is revoked.
    </p>`;
  if (status === 'pending_bind')
    return html`<p class="small why">It starts when its key is bound, with the token that came with it.</p>`;
  if (status !== 'suspended' && status !== 'revoked') return null;
  return html`<p class="small why">
    ${describeCause(status_cause)}${status_since && html`, <${Ago} at=${status_since} />`}${status_detail && html`: <span class="theirs">“${visibleLine(status_detail)}”</span>`}
  </p>`;
}
