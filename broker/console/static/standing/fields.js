// The fields of a standing approval, beside the approval of a held call: future calls like it pass, too. A sentence says what results.
/** @typedef {import('../../answers.ts').StandingOffer} StandingOffer */
/** @typedef {import('../../answers.ts').StandingBody} StandingBody */
/** @typedef {StandingBody | 'wrong' | undefined} Heard */
import { asError, ask } from '/console/api.js';
import { html, useEffect, useLayoutEffect, useState } from '/console/html.js';
import { checkedTo, openTo, valueTo } from '/console/shell/fields.js';
import { memberName, standingSentence } from '/console/standing/sentence.js';
import { visibleLine } from '/console/visible.js';

const SPANS = [
  { seconds: 3600, words: '1 hour' },
  { seconds: 86_400, words: '1 day' },
  { seconds: 7 * 86_400, words: '7 days' },
  { seconds: 30 * 86_400, words: '30 days' },
];
const MAX_SHOWN = 80;

/**
 * `hear` receives the standing approval to send with the approval; undefined when none is wanted. `wrong`: the input is invalid, or the fields are
 * still loading. `written`: the terms to begin with, such as those of an approval that failed.
 *
 * @param {{ id: string, written?: StandingBody, hear: (standing: Heard) => void }} props
 */
export function StandingFields({ id, written, hear }) {
  const [open, setOpen] = useState(written !== undefined);
  const [offer, setOffer] = useState(/** @type {StandingOffer | undefined} */ (undefined));
  const [failed, setFailed] = useState(/** @type {string | undefined} */ (undefined));
  useEffect(() => {
    if (!open || offer) return;
    ask('GET', `/owner/approvals/${id}`).then(
      ({ standing }) => (standing ? setOffer(standing) : setFailed('This can no longer be decided.')),
      (error) => setFailed(asError(error).message),
    );
  }, [open]);
  // Before the browser paints, here and below (useEffect runs after it), so that an approval immediately afterwards sends what the page shows.
  useLayoutEffect(() => {
    if (!open || failed || (offer && !offer.possible)) hear(undefined);
    else if (!offer) hear('wrong');
  }, [open, failed, offer]);
  return html`<details class="standing" open=${written !== undefined} onToggle=${openTo(setOpen)}>
    <summary>Also the next calls like this one…</summary>
    ${failed && html`<p class="small" data-kind="bad" role="alert">${failed}</p>`}
    ${open && !offer && !failed && html`<p class="quiet small">Loading…</p>`}
    ${open && offer && (offer.possible ? html`<${Terms} offer=${offer} written=${written} hear=${hear} />` : html`<p class="small standing-not">${visibleLine(offer.why ?? '')}</p>`)}
  </details>`;
}

/** @param {{ offer: StandingOffer, written: StandingBody | undefined, hear: (standing: Heard) => void }} props */
function Terms({ offer, written, hear }) {
  const [from] = useState(() => Date.now());
  const [count, setCount] = useState(String(written?.count ?? 10));
  const [span, setSpan] = useState(() => spanOf(written, from));
  const [limits, setLimits] = useState(() =>
    Object.fromEntries((written?.free ?? []).map(({ member, at_most }) => [member, String(at_most ?? '')])),
  );
  const free = offer.members
    .filter(({ member }) => limits[member] !== undefined)
    .map(({ member, at_most }) => ({ member, at_most: at_most === null ? null : Number(limits[member]) }));
  const session = span === 'session';
  const until = new Date(from + (session ? offer.longest_session_seconds : Number(span)) * 1000).toISOString();
  const problem = problemOf(offer, Number(count), free);
  useLayoutEffect(() => {
    hear(
      problem
        ? 'wrong'
        : {
            count: Number(count),
            ...(session ? { session: true } : { until }),
            free: free.map(({ member, at_most }) => ({ member, ...(at_most !== null && { at_most }) })),
          },
    );
  }, [count, span, JSON.stringify(limits)]);
  const set = (/** @type {string} */ member, /** @type {string | undefined} */ limit) =>
    setLimits(({ [member]: _, ...others }) => (limit === undefined ? others : { ...others, [member]: limit }));
  return html`
    <div class="standing-terms">
      <label for="standing-count">How many</label>
      <input id="standing-count" type="number" min="1" max=${offer.most_uses} step="1" value=${count} onInput=${valueTo(setCount)} />
      <label for="standing-span">For how long</label>
      <select id="standing-span" value=${span} onChange=${valueTo(setSpan)}>
        ${SPANS.map(({ seconds, words }) => html`<option key=${seconds} value=${seconds}>${words}</option>`)}
        ${offer.session && html`<option value="session">this session of the agent</option>`}
      </select>
    </div>
    <fieldset class="standing-free">
      <legend>What may differ</legend>
      ${offer.members.length === 0 && html`<p class="quiet small">Nothing: only calls that are the same as this one pass.</p>`}
      ${offer.members.map(
        (one) =>
          html`<${Member} key=${one.member} one=${one} limit=${limits[one.member]} set=${(/** @type {string | undefined} */ limit) => set(one.member, limit)} />`,
      )}
    </fieldset>
    <p class="small standing-says" role="status" data-kind=${problem ? 'bad' : undefined}>
      ${problem ?? standingSentence({ count: Number(count), until, session, free })}</p>
  `;
}

/** Returns the chosen duration of terms that were written some minutes ago. @param {StandingBody | undefined} written @param {number} now */
function spanOf(written, now) {
  if (written?.session) return 'session';
  const left = written?.until === undefined ? 0 : (Date.parse(written.until) - now) / 1000;
  return String((SPANS.find(({ seconds }) => seconds >= left) ?? SPANS.at(-1))?.seconds);
}

/** @param {{ one: StandingOffer['members'][number], limit: string | undefined, set: (limit: string | undefined) => void }} props */
function Member({ one, limit, set }) {
  const id = `standing-${one.member}`;
  const name = memberName(one.member);
  const value = typeof one.value === 'string' ? one.value : JSON.stringify(one.value);
  return html`<div class="standing-member">
    <label class="choice"><input type="checkbox" id=${id} checked=${limit !== undefined}
      onChange=${checkedTo((checked) => set(checked ? String(one.at_most ?? '') : undefined))} />
      <span><code>${name}</code> <span class="quiet small theirs">now ${visibleLine(value.slice(0, MAX_SHOWN).replaceAll(/\s*\n\s*/g, ' ↵ '))}${value.length > MAX_SHOWN ? '…' : ''}</span></span></label>
    ${
      one.at_most !== null &&
      limit !== undefined &&
      html`<label class="small" for="${id}-most">at most</label>
      <input id="${id}-most" type="number" min="0" max=${one.at_most} step="any" value=${limit} onInput=${valueTo(set)} />`
    }
  </div>`;
}

/**
 * @param {StandingOffer} offer
 * @param {number} count
 * @param {{ member: string, at_most: number | null }[]} free
 */
function problemOf(offer, count, free) {
  if (!Number.isInteger(count) || count < 1 || count > offer.most_uses)
    return `Write a number from 1 to ${offer.most_uses}.`;
  const wrong = free.find(({ member, at_most }) => {
    const most = offer.members.find((one) => one.member === member)?.at_most ?? null;
    return at_most !== null && most !== null && !(at_most > 0 && at_most <= most);
  });
  return wrong && `${memberName(wrong.member)} may be at most what it is in this call.`;
}
