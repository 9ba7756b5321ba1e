// Edits the manifest of a platform that is not built in: as one text, with a preview of the changes before they apply.
/** @typedef {import('../../answers.ts').WholePlatform} WholePlatform */
/** @typedef {Record<string, unknown>} Entry */
/** @typedef {{ entry: Entry, changes: readonly string[], warnings: readonly string[] }} Tried */
import { ask, Refused } from '/console/api.js';
import { Field, FileField } from '/console/connections/credential.js';
import { membersIn } from '/console/connections/own-entry.js';
import { html, useEffect, useId, useState } from '/console/html.js';
import { Unseen } from '/console/policy/unseen.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Dialog } from '/console/shell/dialog.js';
import { Loading } from '/console/shell/loaded.js';
import { useDoing } from '/console/shell/use-doing.js';
import { visible, visibleLine } from '/console/visible.js';

/** Secrets that a manifest's `auth` references instead of containing them. */
const SECRETS = /** @type {const} */ ({
  client_id: 'Client id',
  client_secret: 'Client secret',
  private_key: 'Private key (PEM)',
});
/** @typedef {keyof typeof SECRETS} SecretName */

const referencedIn = (/** @type {Entry} */ { auth }) =>
  /** @type {SecretName[]} */ (Object.keys(SECRETS)).filter(
    (name) => typeof (/** @type {Entry | undefined} */ (auth)?.[name]) === 'object',
  );

const FIRST = ['kind', 'name', 'base_url', 'auth', 'scopes'];

/** Returns the manifest as YAML, with the most important members first. @param {Entry} manifest */
async function textOf(manifest) {
  const { stringify } = await import('/console/vendor/yaml/index.js');
  const names = [...new Set([...FIRST, ...Object.keys(manifest)])].filter((name) => manifest[name] !== undefined);
  return stringify(Object.fromEntries(names.map((name) => [name, manifest[name]])), { lineWidth: 0 });
}

/** @param {{ platform: WholePlatform, changed: () => void, onClose: () => void }} props */
export function ChangeManifest({ platform, changed, onClose }) {
  const [present, setPresent] = useState(platform);
  const [text, setText] = useState(/** @type {string | undefined} */ (undefined));
  const [secrets, setSecrets] = useState(/** @type {Partial<Record<SecretName, string>>} */ ({}));
  const [referenced, setReferenced] = useState(referencedIn(platform.manifest));
  const [tried, setTried] = useState(/** @type {Tried | undefined} */ (undefined));
  const { busy, problem, run } = useDoing();
  const announce = useAnnounce();
  const address = /** @type {const} */ (`/owner/platforms/${platform.platform_id}`);
  const name = visibleLine(platform.name);
  useEffect(() => {
    textOf(present.manifest).then(setText);
  }, [present]);
  const send = (/** @type {Entry} */ entry, /** @type {boolean} */ dry_run) => {
    const given = referencedIn(entry).flatMap((one) => (secrets[one] ? [[one, secrets[one]]] : []));
    return ask('POST', address, { entry, secrets: Object.fromEntries(given), version: present.version, dry_run });
  };
  const look = () =>
    run(async () => {
      const entry = await membersIn(text ?? '');
      setReferenced(referencedIn(entry));
      const { changes, warnings } = await send(entry, true);
      setTried({ entry, changes, warnings });
    });
  const save = (/** @type {Tried} */ { entry }) =>
    run(async () => {
      const { version } = await send(entry, false);
      announce(`“${name}” has version ${version} of its manifest.`, 'good');
      changed();
      onClose();
    });
  const reload = () =>
    run(async () => {
      setTried(undefined);
      setPresent(await ask('GET', address));
    });
  const write = (/** @type {{ currentTarget: HTMLTextAreaElement }} */ { currentTarget }) =>
    setText(currentTarget.value);
  const same = tried?.changes.length === 0;
  const submit = () => (!tried ? look() : same ? setTried(undefined) : save(tried));
  return html`<${Dialog} title=${tried ? `Change ${name}?` : `The manifest of ${name}`} keeps onClose=${onClose} onSubmit=${submit}>
    ${tried && html`<${Changes} ...${tried} />`}
    ${!tried && text === undefined && html`<${Loading} />`}
    ${
      !tried &&
      text !== undefined &&
      html`<${Text} text=${text} write=${write} isWrong=${problem !== undefined} />
        ${referenced.map((one) => {
          const hear = (/** @type {string} */ value) => setSecrets((before) => ({ ...before, [one]: value }));
          return one === 'private_key'
            ? html`<${FileField} key=${one} words=${SECRETS[one]} accept=".pem" optional read=${hear} />`
            : html`<${Field} key=${one} name=${one} words=${SECRETS[one]} optional hint="Empty: the stored one is kept." value=${secrets[one] ?? ''} hear=${hear} />`;
        })}`
    }
    <${Wrong} problem=${problem} reload=${reload} />
    <div class="buttons">
      ${
        tried
          ? html`<button key="back" type="button" id="back" ref=${focusIt} onClick=${() => setTried(undefined)}>Back</button>
            ${!same && html`<button key="save" type="submit" class="primary" id="save-manifest" disabled=${busy}>Change it</button>`}`
          : html`<button key="cancel" type="button" onClick=${onClose}>Cancel</button>
            <button key="look" type="submit" class="primary" id="look-at-changes" disabled=${busy || !text?.trim()}>Show what changes</button>`
      }
    </div>
  <//>`;
}

/** Focuses this button, since the one that was pressed is no longer on the page. @param {HTMLElement | null} button */
const focusIt = (button) => button?.focus();

/** @param {{ text: string, write: (event: { currentTarget: HTMLTextAreaElement }) => void, isWrong: boolean }} props */
function Text({ text, write, isWrong }) {
  const id = useId();
  return html`<div class="field manifest">
    <label for=${id}>As in a governance file, in YAML</label>
    <textarea id=${id} data-field="manifest" class="mono" rows="16" spellcheck=${false} autocapitalize="off" aria-describedby="${id}-hint" aria-invalid=${isWrong ? true : null} value=${text} onInput=${write}></textarea>
    <p class="hint" id="${id}-hint"><a href="/docs/platforms" target="_blank" rel="noreferrer">What a manifest can say</a>. Its id, its connections and its grants stay.</p>
    <${Unseen} text=${text} />
  </div>`;
}

/** @param {Pick<Tried, 'changes' | 'warnings'>} props */
export function Changes({ changes, warnings }) {
  if (changes.length === 0) return html`<p>This says the same as the manifest that is in force.</p>`;
  return html`
    <p>In force from the next call on, of every agent that is granted something on it:</p>
    <ul class="manifest-changes" id="manifest-changes">${changes.map((line) => html`<li key=${line}><code class="theirs">${visibleLine(line)}</code></li>`)}</ul>
    ${warnings.map((one) => html`<p class="notice" data-kind="wait" key=${one}>${visibleLine(one)}</p>`)}
    <p class="quiet small">Calls that match standing approvals for this platform are held again, and held calls are checked against the new manifest when they are approved.</p>
  `;
}

/** All errors of the broker; when the version is outdated, a button that reloads the current one. @param {{ problem: Error | undefined, reload: () => void }} props */
function Wrong({ problem, reload }) {
  if (!problem) return null;
  const { problems, version } = /** @type {{ problems?: unknown, version?: unknown }} */ (
    problem instanceof Refused ? problem.answer : {}
  );
  const all = Array.isArray(problems) ? problems.map(String) : [problem.message];
  return html`<div class="notice" data-kind="bad" role="alert" id="manifest-wrong">
    <div>
      ${all.map((one) => html`<p class="theirs" key=${one}>${visible(one)}</p>`)}
      ${typeof version === 'number' && html`<p><button type="button" class="compact" id="load-version" onClick=${reload}>Load version ${version}</button> What is written here is replaced.</p>`}
    </div>
  </div>`;
}
