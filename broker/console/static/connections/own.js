// The page of a platform that is not built in: describe it, connect it and test it; for an existing one, connect another account or remove it.
/** @typedef {import('../../answers.ts').Platform} Platform */
/** @typedef {import('../../answers.ts').Tested} Tested */
/** @typedef {import('/console/connections/steps.js').Tried} Tried */
/** @typedef {import('../../answers.ts').WholePlatform} WholePlatform */
/** @typedef {import('/console/connections/connect.js').Connected} Connected */
/** @typedef {import('/console/connections/credential.js').Written} Written */
/** @typedef {import('/console/connections/own-entry.js').Kind} Kind */
/** @typedef {import('/console/connections/own-entry.js').Own} Own */
import { ask } from '/console/api.js';
import { describeTest } from '/console/connections/connection-labels.js';
import { CredentialFields, Field, secretOf } from '/console/connections/credential.js';
import { Done } from '/console/connections/done.js';
import { LeaveDialog } from '/console/connections/leave-dialog.js';
import { ChangeManifest } from '/console/connections/manifest.js';
import { entryOf, membersIn, NOTHING } from '/console/connections/own-entry.js';
import { Auth, FromOpenApi, Place, Scopes } from '/console/connections/own-fields.js';
import { connect } from '/console/connections/steps.js';
import { html, useState } from '/console/html.js';
import { Failed, Loading, useLoaded } from '/console/shell/loaded.js';
import { Question } from '/console/shell/question.js';
import { navigate } from '/console/shell/router.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { ToolServer } from '/console/tools/tools.js';
import { visibleLine } from '/console/visible.js';

/** The page of an existing platform. @param {{ platform: Platform, changed: () => void }} props */
export function OnOwn({ platform, changed }) {
  const { answer, error, reload } = useLoaded(
    /** @type {const} */ (`/owner/platforms/${platform.platform_id}`),
    600_000,
  );
  const [asking, setAsking] = useState(/** @type {'' | 'change' | 'remove'} */ (''));
  const close = () => setAsking('');
  const name = visibleLine(platform.name);
  const remove = async () => {
    await ask('DELETE', /** @type {const} */ (`/owner/platforms/${platform.platform_id}`));
    changed();
    navigate('/console/connections/new');
    return `“${name}” is removed.`;
  };
  if (!answer) return error ? html`<${Failed} error=${error} again=${reload} />` : html`<${Loading} />`;
  return html`
    <${OwnForm} kind=${answer.kind === 'mcp' ? 'mcp' : 'rest'} known=${answer} taken=${[]} changed=${changed} />
    <section class="sheet others stack" aria-labelledby="scopes-of" id="manifest">
      <h2 id="scopes-of">What agents can be granted on it</h2>
      <dl class="facts">${answer.scopes.map(({ scope, rules }) => html`<dt><code class="theirs">${scope}</code></dt><dd class="small theirs">${rules.map(visibleLine).join(', ')}</dd>`)}</dl>
      <p class="quiet small">At <code class="theirs">${visibleLine(answer.base_url)}</code>, version ${answer.version} of its manifest. To remove this platform, remove its connections and grants first.</p>
      <div class="buttons"><button type="button" id="change-manifest" onClick=${() => setAsking('change')}>Change its manifest…</button>
      <button type="button" class="danger" id="remove-platform" onClick=${() => setAsking('remove')}>Remove this platform…</button></div>
    </section>
    ${asking === 'change' && html`<${ChangeManifest} platform=${answer} changed=${() => Promise.all([reload(), changed()])} onClose=${close} />`}
    ${
      asking === 'remove' &&
      html`<${Question} title="Remove this platform?" verb="Remove" kind="danger solid" work=${remove} onClose=${close}>
        <p>The broker forgets <strong class="theirs">${name}</strong>, its address and its scopes. What is on record stays.</p>
      <//>`
    }
  `;
}

/** `known`: the platform to which another account is connected. `taken`: ids of other platforms. @param {{ kind: Kind, known?: WholePlatform, taken: readonly string[], changed: () => void }} props */
export function OwnForm({ kind, known, taken, changed }) {
  const [own, setOwn] = useState({ ...NOTHING, isNamed: false, ...(kind === 'mcp' && { scopes: 'use\n  tool *' }) });
  const [label, setLabel] = useState('');
  const [written, write] = useState(/** @type {Written} */ ({}));
  const [refused, setRefused] = useState(/** @type {Tried | undefined} */ (undefined));
  const [leaving, setLeaving] = useState(/** @type {{ id: string, url: string } | undefined} */ (undefined));
  const [done, setDone] = useState(/** @type {Connected | undefined} */ (undefined));
  const { busy, problem, run } = useDoing();
  const { type } = /** @type {{ type?: string }} */ (known?.manifest.auth ?? { type: own.auth });
  const isOAuth = type === 'oauth2';
  const parts = known?.secret_parts ?? null;
  const secret = isOAuth ? undefined : secretOf(parts, written);
  const id = known?.platform_id ?? own.id.trim();
  const others = known?.connections.length ?? 0;
  const usual = others > 0 ? `${id}-${others + 1}` : id;
  const change = (/** @type {Partial<Own>} */ to) =>
    setOwn((before) => {
      const isNamed = before.isNamed || 'id' in to;
      const next = { ...before, ...to, isNamed };
      // Until a person enters an id, it is derived from the name or the address.
      return isNamed ? next : { ...next, id: freeId(next, taken) };
    });
  const lacks = (!isOAuth && secret === undefined) || (!known && (!own.address.trim() || !id || !own.scopes.trim()));
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (lacks) return;
    setRefused(undefined);
    run(async () => {
      const entry = known ? {} : entryOf(kind, own, await membersIn(own.more));
      const { client_secret } = own;
      const { connection, test, consentAt } = await connect({
        platformId: id,
        known: known !== undefined,
        entry: async () => entry,
        secrets: isOAuth && client_secret ? { client_secret } : {},
        label: label.trim() || usual,
        secret,
        way: isOAuth ? 'oauth' : 'token',
      });
      write({});
      if (consentAt) {
        change({ client_secret: '' });
        setLeaving({ id: connection.id, url: consentAt });
      } else if (test?.ok) {
        setDone({ platform: id, connection, test });
        changed();
        scrollTo(0, 0);
      } else setRefused(test);
    });
  };
  if (done)
    return html`<${Done} ...${done} another=${() => navigate(`/console/connections/new?to=${id}`)} />
      ${kind === 'mcp' && html`<${ToolServer} platform=${{ platform_id: id, name: own.name.trim() || id }} />`}`;
  const common = { kind, own, change };
  return html`<form id="own-form" class="sheet connect stack" onSubmit=${submit}>
    ${
      !known &&
      html`${kind === 'rest' && html`<${FromOpenApi} change=${change} />`}
      <${Place} ...${common} /><${Auth} ...${common} />`
    }
    ${!isOAuth && html`<${CredentialFields} parts=${parts} what=${WHAT[type ?? ''] ?? 'its credential'} written=${written} write=${write} />`}
    ${!known && html`<${Scopes} ...${common} />`}
    <${Field} name="label" open optional words="What to call this connection" hint=${`Empty: ${usual || 'the id of the platform'}`} value=${label} hear=${setLabel} />
    <${Problem} problem=${problem} />
    ${refused && html`<div class="notice" data-kind="bad" role="alert" id="refused"><p><strong>${describeTest(refused).words}.</strong> <span class="theirs">${visibleLine(refused.detail)}</span> ${refused.left ?? 'Nothing was kept.'}</p></div>`}
    <div class="buttons"><button type="submit" class="primary" id="connect" disabled=${busy || lacks}>${busy ? 'Asking the platform…' : isOAuth ? 'Continue to consent' : 'Connect and test'}</button></div>
    ${leaving && html`<${LeaveDialog} connection=${{ label: label.trim() || usual, platform: id }} url=${leaving.url} onClose=${() => navigate(`/console/connections?connect=${leaving.id}`)} />`}
  </form>`;
}

/** Label of a credential that is a single text. @type {Record<string, string>} */
const WHAT = { basic: 'user:password', app: 'the number of the installation' };

/** Derives an unused id, such as `crm` from https://api.crm.example/v2. @param {Own} own @param {readonly string[]} taken */
function freeId({ name, address }, taken) {
  const host = URL.parse(address.trim())?.hostname ?? '';
  const [first = ''] = host.replace(/^(?:www|api|mcp)\./, '').split('.');
  const id = (name.trim() || (/^[\d[]/.test(host) ? '' : first))
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 32);
  if (id === '' || !taken.includes(id)) return id;
  for (let number = 2; ; number++) if (!taken.includes(`${id}-${number}`)) return `${id}-${number}`;
}
