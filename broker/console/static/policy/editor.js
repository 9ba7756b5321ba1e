// The editor of rules, as cards or as text; nothing typed is lost.
/** @typedef {import('/console/policy/draft.js').Draft} Draft */
/** @typedef {import('/console/policy/subject.js').Subject} Subject */
/** @typedef {import('/console/html.js').Children} Children */
/** @typedef {import('/console/policy/problems.js').Problems} Problems */
/** @typedef {import('/console/policy/subject.js').Saved} Saved */
import { asError, Refused } from '/console/api.js';
import { html, useEffect, useRef, useState } from '/console/html.js';
import { LIST } from '/console/policies/place.js';
import { Cards } from '/console/policy/cards.js';
import { Conflict } from '/console/policy/conflict.js';
import { DiffView } from '/console/policy/diff-view.js';
import { isSame } from '/console/policy/differ.js';
import { useDraft } from '/console/policy/draft.js';
import { useKnown } from '/console/policy/known.js';
import { NONE, problemsIn } from '/console/policy/problems.js';
import { save } from '/console/policy/subject.js';
import { FORMS, TextForm, useForms } from '/console/policy/text-form.js';
import { LastTry, Try, useWhose } from '/console/policy/try.js';
import { useTrying } from '/console/policy/use-trying.js';
import { keepWarnings } from '/console/policy/warnings.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Dialog } from '/console/shell/dialog.js';
import { valueTo } from '/console/shell/fields.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { Link, navigate, useLeaving } from '/console/shell/router.js';
import { Problem } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

/**
 * `inForce`: the current version; version 0 of a policy: it does not exist yet. `back`: the address to go to without saving.
 *
 * @param {{ inForce: Subject, reload: () => Promise<void>, back: string, onSaved: (saved: Saved) => unknown }} props
 */
export function Editor({ inForce, reload, back, onSaved }) {
  const owner = useOwner();
  const may = mayChange(owner);
  const announce = useAnnounce();
  const known = useKnown();
  const { draft, change: changeDraft, forget, restart, restored } = useDraft(inForce);
  const [problems, setProblems] = useState(/** @type {Problems} */ (NONE));
  // Each card compares its fields with the refused rule, and hides the errors of changed fields.
  const change = (/** @type {Parameters<typeof changeDraft>[0]} */ to) => {
    setProblems((before) => (before.all.length === 0 ? before : { ...before, rest: [], all: [] }));
    changeDraft(to);
  };
  const { problem: textProblem, write, turn } = useForms(draft, change);
  const [asking, setAsking] = useState(false);
  /** Whether the dialog is still open when the answer arrives. */
  const isAsking = useRef(asking);
  isAsking.current = asking;
  const [leaving, setLeaving] = useState(/** @type {{ go: () => void } | undefined} */ (undefined));
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(/** @type {Error | undefined} */ (undefined));
  const { kind } = inForce;
  const fresh = kind === 'policy' && inForce.version === 0;
  const rules = draft.cards.map(({ rule }) => rule);
  const changed =
    textProblem !== undefined || !isSame(rules, draft.baseRules) || (fresh && draft.name !== inForce.name);
  const outdated = inForce.version !== draft.base;
  const refused = (/** @type {unknown} */ thrown) => setProblems(problemsIn(thrown, draft.cards) ?? NONE);
  const whose = useWhose(inForce);
  const trying = useTrying({ subject: inForce, rules, as: whose.as, refused });
  const triable = kind === 'guardrails' || whose.as !== undefined;
  useEffect(() => {
    if (outdated && !changed) restart();
  }, [outdated, changed]);
  useLeaving(changed, (go) => setLeaving({ go }));
  const store = async () => {
    if (busy) return;
    setBusy(true);
    setProblem(undefined);
    try {
      const saved = await save(
        { ...inForce, version: draft.base, name: fresh ? draft.name.trim() : inForce.name },
        rules,
      );
      forget();
      keepWarnings(saved);
      announce(`${visibleLine(saved.name ?? inForce.name)} is saved: version ${saved.version} is in force.`, 'good');
      onSaved(saved);
    } catch (thrown) {
      const found = problemsIn(thrown, draft.cards);
      const conflicts = thrown instanceof Refused && thrown.code === 'conflict' && !fresh;
      setProblems(found ?? NONE);
      if (found || conflicts) setAsking(false);
      else if (isAsking.current) setProblem(asError(thrown));
      else announce(asError(thrown).message, 'bad');
      if (conflicts) await reload();
    }
    setBusy(false);
  };
  const ask = () => {
    setProblem(undefined);
    setAsking(true);
  };
  const dropAnd = (/** @type {() => void} */ go) => () => {
    forget();
    go();
  };
  const leave = () => navigate(back, { sure: true });
  const drop = dropAnd(leave);
  const why = !may
    ? `Your role is ${owner.role}: an admin can save.`
    : textProblem
      ? 'The text is not a list of rules yet.'
      : outdated
        ? 'Decide first about the version that was saved meanwhile.'
        : undefined;
  return html`
    <div class="policy-page editor" data-version=${draft.base}>
      <div class="page-head">
        <div>
          <p class="small"><${Link} to=${back === LIST ? LIST : back}>${back === LIST ? 'Policies' : visibleLine(inForce.name)}<//></p>
          <h1 class="theirs">${fresh ? 'New policy' : `Change ${visibleLine(inForce.name)}`}</h1>
        </div>
        <div class="chips" role="radiogroup" aria-label="Written as">
          ${Object.entries(FORMS).map(([form, words]) => html`<label class="chip" key=${form}><input type="radio" name="form" value=${form} checked=${draft.form === form} disabled=${textProblem !== undefined && draft.form !== form} onChange=${() => turn(/** @type {typeof draft.form} */ (form))} />${words}</label>`)}
        </div>
      </div>
      <div class="stack">
        ${restored && changed && html`<p class="notice" role="status" id="restored"><span>Your unsaved changes were restored.</span><button type="button" class="compact" id="restart" onClick=${restart}>Begin again</button></p>`}
        ${outdated && changed && html`<${Conflict} inForce=${inForce} draft=${draft} change=${change} drop=${drop} />`}
        ${
          fresh &&
          html`<div class="field name-field">
            <label for="policy-name">Name</label>
            <input id="policy-name" maxlength="64" autocomplete="off" required value=${draft.name} onInput=${valueTo((name) => change({ name }))} />
            <p class="hint">Letters, digits, “.”, “_” and “-”. It stays its name.</p>
          </div>`
        }
        <p class="small quiet">${kind === 'policy' ? 'The most severe rule that matches wins: deny, then ask a person, then allow. Their order does not matter. What no rule allows is refused.' : 'The most severe that matches wins, over every policy. Their order does not matter. Each has a different name.'}</p>
        ${problems.rest.map((one) => html`<p class="notice" data-kind="bad" role="alert" key=${one}>${visibleLine(one)}</p>`)}
        ${
          draft.form === 'cards'
            ? html`<${Cards} kind=${kind} cards=${draft.cards} known=${known} problems=${problems} change=${change} />`
            : html`<${TextForm} draft=${draft} problem=${textProblem} problems=${problems.all} write=${write} />`
        }
        <${Try} subject=${inForce} rules=${rules} known=${known} trying=${trying} whose=${whose} disabled=${textProblem !== undefined} refused=${refused} />
      </div>
      <div class="save-bar">
        ${why && html`<p class="small quiet" id="why-not">${why}</p>`}
        <button type="button" id="leave-editor" onClick=${() => (changed ? setLeaving({ go: leave }) : drop())}>Cancel</button>
        <button type="button" class="primary" id="save" disabled=${why !== undefined || (!changed && !fresh)} onClick=${ask}>Save…</button>
      </div>
      ${asking && html`<${SaveDialog} subject=${inForce} draft=${draft} busy=${busy} problem=${problem} tried=${html`<${LastTry} trying=${trying} possible=${triable} />`} onClose=${() => setAsking(false)} save=${store} />`}
      ${leaving && html`<${LeaveDialog} stay=${() => setLeaving(undefined)} keep=${leaving.go} drop=${dropAnd(leaving.go)} />`}
    </div>
  `;
}

/** Asks what to do with unsaved changes before the page is left. @param {{ stay: () => void, keep: () => void, drop: () => void }} props */
const LeaveDialog = ({ stay, keep, drop }) => html`
  <${Dialog} title="Leave without saving?" onClose=${stay} onSubmit=${keep}>
    <p>Your changes are not in force. They can stay in this tab, until you come back or close it.</p>
    <div class="buttons">
      <button type="button" id="stay" onClick=${stay}>Stay</button>
      <button type="button" class="danger" id="drop-draft" onClick=${drop}>Leave and drop them</button>
      <button type="submit" class="primary" id="keep-draft">Leave and keep them</button>
    </div>
  <//>
`;

// Shows the changes before a new version is saved and takes effect.
/** `tried`: the result of trying these rules, or a button to try them. @param {{ subject: Subject, draft: Draft, busy: boolean, problem: Error | undefined, tried: Children, onClose: () => void, save: () => void }} props */
function SaveDialog({ subject, draft, busy, problem, tried, onClose, save }) {
  const rules = draft.cards.map(({ rule }) => rule);
  const fresh = subject.version === 0 && subject.kind === 'policy';
  const name = visibleLine(fresh ? draft.name : subject.name);
  return html`
    <${Dialog} title=${fresh ? `Make the policy ${name}?` : `Save ${name}?`} onClose=${onClose} onSubmit=${save}>
      <p>${whom(subject, fresh)}</p>
      <div class="diff-box" role="group" aria-label="What changes" tabindex="0"><${DiffView} before=${fresh ? [] : draft.baseRules} after=${rules} none=${fresh ? 'It has no rules: every call of the agents under it is refused.' : 'The rules are those in force.'} /></div>
      ${tried}
      <${Problem} problem=${problem} />
      <div class="buttons">
        <button type="button" onClick=${onClose}>Back</button>
        <button type="submit" class="primary" id="save-now" disabled=${busy}>${fresh ? 'Make it' : 'Save'}</button>
      </div>
    <//>
  `;
}

/** @param {Subject} subject @param {boolean} fresh */
function whom({ kind, agents }, fresh) {
  if (fresh) return 'No agent is under it yet. You put agents under it afterwards, on its page.';
  if (kind === 'guardrails') return 'In force for every agent, from its next call on.';
  if (agents === 0) return 'No agent is under it, so it decides about nobody yet.';
  return `In force for the ${agents === 1 ? 'agent' : `${agents} agents`} under it, from the next call on.`;
}
