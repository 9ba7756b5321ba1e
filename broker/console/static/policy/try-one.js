// Tries the rules on one call, and compares the result with that of the rules in force.
/** @typedef {import('../../answers.ts').Agent} Agent */
/** @typedef {import('../../answers.ts').Simulation} Simulation */
/** @typedef {import('/console/policies/effects.js').Rule} Rule */
/** @typedef {import('/console/policy/known.js').Known} Known */
/** @typedef {import('/console/policy/subject.js').Subject} Subject */
/** @typedef {{ platform: string, scope: string, method: string, endpoint: string, body: string }} Call */
import { ask } from '/console/api.js';
import { html, useEffect, useState } from '/console/html.js';
import { effectOf, maskOf } from '/console/policies/effects.js';
import { AgentPick } from '/console/policy/agent-pick.js';
import { endpointOptions, operationsOf } from '/console/policy/known.js';
import { OptionList, useOptions } from '/console/policy/options.js';
import { proposed, ResultText } from '/console/policy/use-trying.js';
import { valueTo } from '/console/shell/fields.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** @param {{ subject: Subject, rules: readonly Rule[], known: Known, disabled: boolean, refused: (thrown: unknown) => void }} props */
export function TryOne({ subject, rules, known, disabled, refused }) {
  const [agent, setAgent] = useState(/** @type {Agent | undefined} */ (undefined));
  const [call, setCall] = useState(
    /** @type {Call} */ ({ platform: '', scope: '', method: 'GET', endpoint: '/', body: '' }),
  );
  const [results, setResults] = useState(
    /** @type {{ before: Simulation, after: Simulation } | undefined} */ (undefined),
  );
  const { busy, problem, run, clear } = useDoing();
  const set = (/** @type {Partial<Call>} */ to) => {
    setCall((before) => ({ ...before, ...to }));
    setResults(undefined);
    clear();
  };
  const scopes = known.find(({ id }) => id === call.platform)?.scopes ?? [];
  const toScope = (/** @type {Known[number]['scopes']} */ some, /** @type {string} */ scope) => {
    const [first] = operationsOf(some.find((one) => one.scope === scope)?.rules ?? []);
    return { scope, ...(first && { method: first.method, endpoint: exampleOf(first.path) }) };
  };
  const toPlatform = (/** @type {string} */ platform) => {
    const some = known.find(({ id }) => id === platform)?.scopes ?? [];
    set({ platform, ...toScope(some, some[0]?.scope ?? '') });
  };
  useEffect(() => {
    if (call.platform === '' && known[0]) toPlatform(known[0].id);
  }, [known]);
  const operations = endpointOptions(known, { platforms: [call.platform], scopes: [call.scope] });
  const takeEndpoint = (/** @type {string} */ path) => {
    const [method = call.method] = operations.find(({ value }) => value === path)?.words.split(', ') ?? [];
    set({ endpoint: exampleOf(path), method });
    show(false);
  };
  const { pressed, isOpen, active, list, show } = useOptions({
    id: 'try-endpoint',
    options: operations,
    take: takeEndpoint,
  });
  const attempt = () =>
    run(async () => {
      if (!agent) throw new Error('Choose an agent first.');
      const { body, method, ...rest } = call;
      const asked = {
        ...rest,
        method: /** @type {'GET'} */ (method),
        agent_id: agent.agent_id,
      };
      if (body.trim() !== '') expectJson(body);
      const options = { written: body.trim() === '' ? {} : { data: body } };
      try {
        const [before, after] = await Promise.all([
          ask('POST', '/owner/simulate', asked, options),
          ask('POST', '/owner/simulate', { ...asked, ...proposed(subject, rules) }, options),
        ]);
        setResults({ before, after });
      } catch (thrown) {
        refused(thrown);
        throw thrown;
      }
    });
  return html`
    <section class="sheet part-like" aria-labelledby="one-head">
      <h3 id="one-head">On one call</h3>
      <div class="try-call">
        <${AgentPick} policyId=${subject.kind === 'policy' && subject.version > 0 ? subject.id : undefined} agent=${agent} choose=${setAgent} />
        <div class="field"><label for="try-platform">Platform</label>
          <select id="try-platform" onChange=${valueTo(toPlatform)}>${known.map(({ id }) => html`<option key=${id} value=${id} selected=${id === call.platform}>${visibleLine(id)}</option>`)}</select></div>
        <div class="field"><label for="try-scope">Scope</label>
          <select id="try-scope" onChange=${valueTo((scope) => set(toScope(scopes, scope)))}>${scopes.map(({ scope }) => html`<option key=${scope} value=${scope} selected=${scope === call.scope}>${visibleLine(scope)}</option>`)}</select></div>
        <div class="field"><label for="try-method">Method</label>
          <select id="try-method" onChange=${valueTo((method) => set({ method }))}>${METHODS.map((method) => html`<option key=${method} value=${method} selected=${method === call.method}>${method}</option>`)}</select></div>
        <div class="field"><label for="try-endpoint">Endpoint</label>
          <div class="combo">
            <input id="try-endpoint" class="mono" role="combobox" autocomplete="off" spellcheck=${false} maxlength="8192" aria-autocomplete="list" aria-expanded=${isOpen}
              aria-controls=${isOpen ? list.id : null} aria-activedescendant=${active} value=${call.endpoint}
              onInput=${valueTo((endpoint) => set({ endpoint }))} onKeyDown=${pressed} onClick=${() => show(true)} onBlur=${() => show(false)} />
            ${isOpen && html`<${OptionList} ...${list} label="Endpoints of the scope" />`}
          </div></div>
        <div class="field"><label for="try-body">Body <span class="quiet">(optional, JSON)</span></label><textarea id="try-body" class="mono" rows="2" spellcheck=${false} value=${call.body} onInput=${valueTo((body) => set({ body }))} /></div>
      </div>
      <div class="buttons"><button type="button" id="try-one" disabled=${busy || disabled || known.length === 0} onClick=${attempt}>Try this call</button></div>
      ${known.length === 0 && html`<p class="small quiet">There is no platform yet to call.</p>`}
      <${Problem} problem=${problem} />
      ${
        results &&
        html`<div class="results" id="one-result" role="status">
          <${Verdict} title="By the rules in force" result=${results.before} />
          <${Verdict} title="By these rules" result=${results.after} />
        </div>`
      }
    </section>
  `;
}

/** Returns an example path that the pattern matches. @param {string} path */
const exampleOf = (path) => path.replaceAll('**', '1').replaceAll('*', '1');

/** @param {string} text */
function expectJson(text) {
  try {
    JSON.parse(text);
  } catch (error) {
    throw new Error(`The body is no JSON: ${error instanceof Error ? error.message : error}`);
  }
}

/** @param {{ title: string, result: Simulation }} props */
function Verdict({ title, result: { decision, detail, matched, mask, prevented } }) {
  return html`
    <div class="verdict" data-decision=${decision}>
      <p class="small quiet">${title}</p>
      <p><${ResultText} effect=${decision} /></p>
      <p class="small theirs">${visibleLine(detail)}</p>
      ${
        matched.length > 0 &&
        html`<ul role="list" class="small">
          ${matched.map((rule, at) => html`<li key=${at} class="theirs">${effectOf(rule.effect).words}: ${rule.source} <strong>${visibleLine(rule.name)}</strong>${rule.error && html` <span class="wrong">${visibleLine(rule.error)}</span>`}</li>`)}
        </ul>`
      }
      ${prevented && html`<p class="small theirs why">It would not be made now: ${visibleLine(prevented.detail)}</p>`}
      ${mask && html`<p class="small theirs">Masked in its answer: ${visibleLine(maskOf(mask))}</p>`}
    </div>
  `;
}
