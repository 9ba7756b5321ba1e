// The fields of notice rules, which set what a channel or device is notified of, and when: the same for all kinds.
/** @typedef {import('../../answers.ts').Channel['rules']} Rules */
import { html, useId } from '/console/html.js';
import { EVENTS } from '/console/notices/channel-labels.js';
import { checkedTo, valueTo } from '/console/shell/fields.js';
import { listOf } from '/console/shell/schema-fields.js';

/** The contents of the fields. @typedef {{ events: string[], agents: string, platforms: string, from: string, to: string, zone: string, days: string[], remind: string }} Written */

const DAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'];
const ALL = Object.keys(EVENTS);

/** @param {Rules} rules @returns {Written} */
export const writtenOf = ({
  events = /** @type {any} */ (ALL),
  agents = [],
  platforms = [],
  quiet,
  remind_minutes,
}) => ({
  events,
  agents: agents.join('\n'),
  platforms: platforms.join('\n'),
  from: quiet?.from ?? '',
  to: quiet?.to ?? '',
  zone: quiet?.zone ?? Intl.DateTimeFormat().resolvedOptions().timeZone,
  days: quiet?.days ?? DAYS,
  remind: remind_minutes === undefined ? '' : String(remind_minutes),
});

/** Converts the fields to rules. Throws an error with a message for a person. @param {Written} written @returns {Rules} */
export function rulesOf({ events, agents, platforms, from, to, zone, days, remind }) {
  if (events.length === 0) throw new Error('Choose at least one kind of notice.');
  if ((from === '') !== (to === '')) throw new Error('Quiet hours: write both times, or none.');
  if (from !== '' && days.length === 0) throw new Error('Quiet hours: choose at least one day.');
  return /** @type {Rules} */ ({
    ...(events.length < ALL.length && { events }),
    ...(listOf(agents).length > 0 && { agents: listOf(agents) }),
    ...(listOf(platforms).length > 0 && { platforms: listOf(platforms) }),
    ...(from !== '' && { quiet: { from, to, zone, ...(days.length < DAYS.length && { days }) } }),
    ...(remind !== '' && { remind_minutes: Number(remind) }),
  });
}

const toggled = (
  /** @type {string[]} */ order,
  /** @type {string[]} */ list,
  /** @type {string} */ one,
  /** @type {boolean} */ on,
) => order.filter((other) => (other === one ? on : list.includes(other)));

/** @param {{ written: Written, write: (written: Written) => void }} props */
export function RulesFields({ written, write }) {
  const id = useId();
  const set = (/** @type {Partial<Written>} */ part) => write({ ...written, ...part });
  return html`
    <fieldset><legend>Tell</legend>
      ${Object.entries(EVENTS).map(
        ([event, words]) => html`<label class="choice" key=${event}>
          <input type="checkbox" data-event=${event} checked=${written.events.includes(event)} onChange=${checkedTo((on) => set({ events: toggled(ALL, written.events, event, on) }))} /> ${words}
        </label>`,
      )}
    </fieldset>
    <div class="field">
      <label for=${`${id}-agents`}>Only of these agents <span class="quiet">(optional)</span></label>
      <textarea id=${`${id}-agents`} rows="1" data-rule="agents" spellcheck="false" value=${written.agents} onInput=${valueTo((agents) => set({ agents }))}></textarea>
      <span class="hint">Names or ids, one a line; * is any text. Their children are included.</span>
    </div>
    <div class="field">
      <label for=${`${id}-platforms`}>Only on these platforms <span class="quiet">(optional)</span></label>
      <textarea id=${`${id}-platforms`} rows="1" data-rule="platforms" spellcheck="false" value=${written.platforms} onInput=${valueTo((platforms) => set({ platforms }))}></textarea>
    </div>
    <fieldset><legend>Quiet hours <span class="quiet">(optional)</span></legend>
      <div class="times">
        <label for=${`${id}-from`}>From</label>
        <input id=${`${id}-from`} type="time" data-rule="from" value=${written.from} onInput=${valueTo((from) => set({ from }))} />
        <label for=${`${id}-to`}>to</label>
        <input id=${`${id}-to`} type="time" data-rule="to" value=${written.to} onInput=${valueTo((to) => set({ to }))} />
      </div>
      <div class="field">
        <label for=${`${id}-zone`}>Time zone</label>
        <input id=${`${id}-zone`} type="text" data-rule="zone" autocomplete="off" spellcheck="false" value=${written.zone} onInput=${valueTo((zone) => set({ zone }))} />
      </div>
      <div class="chips" role="group" aria-label="Days on which they begin">
        ${DAYS.map(
          (day) =>
            html`<label class="chip" key=${day}><input type="checkbox" data-day=${day} checked=${written.days.includes(day)} onChange=${checkedTo((on) => set({ days: toggled(DAYS, written.days, day, on) }))} /> ${day}</label>`,
        )}
      </div>
      <p class="hint small quiet">When they end, you are notified of what still waits.</p>
    </fieldset>
    <div class="field">
      <label for=${`${id}-remind`}>Remind again, minutes before expiry <span class="quiet">(optional)</span></label>
      <input id=${`${id}-remind`} type="number" min="1" max="43200" data-rule="remind" value=${written.remind} onInput=${valueTo((remind) => set({ remind }))} />
    </div>
  `;
}
