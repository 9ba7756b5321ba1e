// The setting of a platform whether each person has their own token, and which sources may assert a person's identity.
/** @typedef {import('../../answers.ts').PeopleOfPlatform} PeopleOfPlatform */
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { checkedTo, valueTo } from '/console/shell/fields.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';

/** @param {{ platform: PeopleOfPlatform, changed: () => void }} props */
export function Switch({ platform: { platform_id: id, name, per_person: before }, changed }) {
  const [enabled, setEnabled] = useState(before?.enabled ?? false);
  const [sources, setSources] = useState((before?.asserted ?? []).join(' '));
  const [confirms, setConfirms] = useState(before?.asserted_consent !== 'link');
  const { busy, problem, run } = useDoing();
  const announce = useAnnounce();
  const save = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const asserted = sources.split(/[\s,]+/).filter((source) => source !== '');
    const done = await run(async () => {
      await ask('POST', `/owner/platforms/${encodeURIComponent(id)}/per-person`, {
        enabled,
        asserted,
        asserted_consent: confirms ? 'confirm' : 'link',
      });
      announce(enabled ? `${name} holds one token per person.` : `${name} uses the organisation's own token.`, 'good');
    });
    if (done) changed();
  };
  return html`<details class="switch">
    <summary>Settings<span class="unseen"> of ${name}</span></summary>
    <form onSubmit=${save}>
      <label><input type="checkbox" class="enabled" checked=${enabled} onChange=${checkedTo(setEnabled)} /> Each person has a token of their own</label>
      <label for=${`sources-${id}`}>Trusted sources: whose unsigned names of people are accepted, such as slack</label>
      <input id=${`sources-${id}`} type="text" autocomplete="off" spellcheck="false" value=${sources} onInput=${valueTo(setSources)} />
      <p class="quiet small">An agent that is made to say another id then acts for another person. Signed assertions of trusted issuers are always accepted.</p>
      <label><input type="checkbox" class="confirms" checked=${confirms} onChange=${checkedTo(setConfirms)} /> An owner confirms accounts of such people before they are used</label>
      ${before?.enabled && !enabled && html`<p class="notice" data-kind="wait">From then on calls use the token of the connection itself, if it has one, for every person.</p>`}
      <${Problem} problem=${problem} />
      <div class="buttons"><button type="submit" class="save" disabled=${busy}>Save<span class="unseen"> for ${name}</span></button></div>
    </form>
  </details>`;
}
