// The title of a held call: which agent wants to do what, on which platform.
/** @typedef {import('../../answers.ts').HeldCall} HeldCall */
/** @typedef {import('/console/approve/held.js').Waits} Waits */
import { html } from '/console/html.js';
import { Sentence } from '/console/request-view/sentence.js';
import { visibleLine } from '/console/visible.js';

/**
 * `over`: whether the call no longer waits.
 *
 * @param {{ held: Pick<HeldCall | Waits, 'platform_name' | 'sentence'> & { agent: Pick<HeldCall['agent'], 'name' | 'parent'> }, over?: boolean }} props
 */
export const CallTitle = ({ held: { agent, platform_name, sentence }, over = false }) => html`<span class="call-title">
  <strong class="theirs">${visibleLine(agent.name)}</strong>${
    agent.parent &&
    html` <span class="quiet">(a child of <span class="theirs">${visibleLine(agent.parent.name)}</span>)</span>`
  } <span class="quiet">${over ? 'wanted' : 'wants'} to</span> <${Sentence} sentence=${sentence} />
  <span class="quiet"> on <span class="theirs">${visibleLine(platform_name)}</span></span></span>`;
