// Confirmation dialogs before a person's account is confirmed or tokens are ended.
/** @typedef {import('../../answers.ts').PersonTokens} PersonTokens */
/** @typedef {import('../../answers.ts').EndPeople} EndPeople */
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { callerOf } from '/console/people/caller.js';
import { valueTo } from '/console/shell/fields.js';
import { Question } from '/console/shell/question.js';
import { visibleLine } from '/console/visible.js';

/** @param {{ one: PersonTokens, onClose: () => void, onDone: () => void }} props */
export function ConfirmAccount({ one: { id, account, named_by }, onClose, onDone }) {
  const [caller, setCaller] = useState('');
  const confirm = async () => {
    await ask('POST', `/owner/people/tokens/${id}/confirm`, caller.trim() === '' ? {} : { caller: callerOf(caller) });
    return 'The account is confirmed: agents can use it.';
  };
  return html`<${Question} title="Confirm this account?" verb="Confirm" id="confirm-account" work=${confirm} onClose=${onClose} onDone=${onDone}>
    <p>A person whose identity only <strong class="theirs">${visibleLine(named_by)}</strong> asserts connected ${account === null ? 'an account that the platform does not name' : html`the account <strong class="theirs">${visibleLine(account)}</strong>`}.
      If it is not that person's own, agents read and write there for the wrong one.</p>
    <label for="compare">What agents call the person (optional; it is compared, and not stored)</label>
    <input id="compare" type="text" autocomplete="off" spellcheck="false" placeholder="slack:U024BE7LH" value=${caller} onInput=${valueTo(setCaller)} />
  <//>`;
}

/** The tokens to end, and the text of the confirmation. @typedef {{ words: string, what: EndPeople }} Ending */

/** @param {{ ending: Ending, onClose: () => void, onDone: () => void }} props */
export function EndDialog({ ending: { words, what }, onClose, onDone }) {
  const end = async () => {
    const { ended, revoked } = await ask('POST', '/owner/people/end', what);
    if (ended === 0) return ['Nothing was ended: no consent by that name was found.', 'wait'];
    return `Ended ${ended}, and revoked ${revoked} of them at the platform.`;
  };
  return html`<${Question} title="End this?" verb="End" kind="danger solid" id="end" work=${end} onClose=${onClose} onDone=${onDone}>
    <p>${words} Calls are answered with a request for consent, from the next one on.</p>
  <//>`;
}
