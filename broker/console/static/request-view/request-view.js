// A held call for the person who decides it: what is sent, the agent's reason, who asks and until when; the
// rest is folded. Text written by the agent is in boxes that are labelled so.
/** @typedef {import('../../answers.ts').ExactRequest} ExactRequest */
/** @typedef {import('../../answers.ts').HeldCall} HeldCall */
/** @typedef {import('/console/approve/held.js').Waits} Waits */
/** @typedef {import('/console/html.js').Children} Children */
import { html, useLayoutEffect, useMemo, useState } from '/console/html.js';
import { describeApprovers } from '/console/request-view/approvers.js';
import { Body, Box, Lines, Unseen } from '/console/request-view/body.js';
import { FIRST_RECIPIENTS } from '/console/request-view/fold.js';
import { Heading } from '/console/request-view/heading.js';
import { forWhom } from '/console/request-view/person.js';
import { changedTexts, counted, describeUpload, readEndpoint } from '/console/request-view/text.js';
import { formatMoment } from '/console/request-view/time-left.js';
import { oddities, oddRecipient, visibleLine } from '/console/visible.js';

/** @param {{ sentences: string[] }} props */
const UnusualContent = ({ sentences }) =>
  sentences.length > 0 && html`<p class="odd small"><strong>Look closely.</strong> ${sentences.join(' ')}</p>`;

/** `platform`: its name. @param {{ request: ExactRequest, platform: string }} props */
function Call({ request, platform }) {
  const { path, readsAs, query, parameters } = useMemo(() => readEndpoint(request.endpoint), [request.endpoint]);
  const read = readsAs ?? path;
  const odd = oddities([read, ...parameters.flatMap(({ name, value }) => [name, value])].join(' '));
  return html`<div class="call">
    <p class="sent">
      <span class="method" data-method=${request.method}>${visibleLine(request.method)}</span>
      <span class="platform theirs">${visibleLine(platform)}</span>
      <${Box} as="code" class="endpoint theirs">${visibleLine(path)}${query !== '' && html`<span class="query">?${visibleLine(query)}</span>`}<//>
    </p>
    ${readsAs !== undefined && html`<p class="small quiet">reads as</p><${Box} as="code" class="endpoint reads-as theirs">${visibleLine(readsAs)}<//>`}
    ${
      parameters.length > 0 &&
      html`<${Box} as="dl" class="parameters small" label="Query">
        ${parameters.map(
          ({ name, value }) =>
            html`<dt class="theirs">${visibleLine(name)}</dt><dd class="theirs">${visibleLine(value)}</dd>`,
        )}
      <//>`
    }
    <${UnusualContent} sentences=${odd} />
  </div>`;
}

/** A longer list of recipients is shown as one text, which a browser lays out quickly. */
const MANY_RECIPIENTS = 300;
/** Characters: a longer recipient is shown in a box. */
const LONG_RECIPIENT = 320;

/** @param {{ recipients: string[], onSeen: (seen: boolean) => void }} props */
function Recipients({ recipients, onSeen }) {
  const [all, setAll] = useState(recipients.length <= FIRST_RECIPIENTS);
  useLayoutEffect(() => onSeen(all), [all]);
  // Unusual recipients first: a person does not read a hundred addresses.
  const sorted = useMemo(
    () => recipients.map((text) => ({ text, odd: oddRecipient(text) })).sort((a, b) => b.odd.length - a.odd.length),
    [recipients],
  );
  const many = recipients.length > MANY_RECIPIENTS;
  return html`<ul role="list" class="recipients">
      ${sorted.slice(0, all && !many ? undefined : FIRST_RECIPIENTS).map(
        ({ text, odd }) => html`<li>
          ${
            text.length > LONG_RECIPIENT
              ? html`<${Lines} text=${visibleLine(text)} label="Recipient" />`
              : html`<span class="theirs">${visibleLine(text)}</span>`
          } <${Unseen} text=${text} />
          <${UnusualContent} sentences=${odd} /></li>`,
      )}
    </ul>
    ${
      all &&
      many &&
      html`<${Lines} text=${sorted.map(({ text }) => visibleLine(text)).join('\n')} label="All recipients" />`
    }
    ${
      !all &&
      html`<button type="button" class="compact" onClick=${() => setAll(true)}>
        Show all ${counted(recipients.length, 'recipient')}
      </button>`
    }`;
}

/** @type {Partial<Record<string, string>>} */
const EFFECTS = {
  require_approval: 'asks a person',
  allow: 'allows',
  deny: 'denies',
  suspend: 'suspends',
  mask: 'masks',
};

/** @param {{ because: HeldCall['held_because'] }} props */
function HoldReasons({ because: { reason, detail, rules } }) {
  return html`<span>${visibleLine(detail ?? reason ?? 'not recorded')}</span>
    ${
      // When one rule matched, the sentence above has everything.
      (rules.length > 1 || rules[0]?.error) &&
      html`<ul role="list" class="rules small quiet">
        ${rules.map(
          ({
            source,
            name,
            says,
            effect,
            error,
          }) => html`<li>${source} rule <code>${visibleLine(says ?? name)}</code> ${EFFECTS[effect] ?? effect}
            ${error && html`<span> (its condition failed: ${visibleLine(error)})</span>`}</li>`,
        )}
      </ul>`
    }`;
}

/** The agent's original request, when an owner edited the call. @param {{ held: HeldCall | Waits }} props */
function OriginalRequest({ held: { asked, ...held } }) {
  if (!asked) return null;
  const by = 'corrected' in held && held.corrected?.by_email;
  return html`<section class="part was-asked">
    <p><strong>Corrected${by ? html` by <span class="theirs">${visibleLine(by)}</span>` : ' by an owner'}.</strong> This is not what the agent requested.</p>
    <details>
      <summary>What the agent requested</summary>
      <${Box} as="code" class="endpoint theirs">${visibleLine(asked.endpoint)}<//>
      ${asked.body !== null && html`<${Lines} text=${JSON.stringify(asked.body, undefined, 2)} label="The body that the agent sent" />`}
    </details>
  </section>`;
}

/**
 * A box for text that the agent wrote.
 *
 * @param {{ title?: string, kind: string, children: Children }} props
 */
const AgentText = ({ title, kind, children }) => html`<section class="part from-agent ${kind}">
  ${title && html`<${Heading}>${title}<//>`}
  ${children}
</section>`;

/**
 * What is recorded about a decision. `who` and `how`: as far as known before it.
 *
 * @param {{ hash: string, who: string, how: string }} props
 */
function Recorded({ hash, who, how }) {
  return html`<div class="recorded">
    <${Heading}>What will be recorded<//>
    <p class="quiet small">In a signed receipt, for the agent’s owner and for auditors:</p>
    <dl class="facts small">
      <dt>Who</dt><dd>${who}</dd>
      <dt>When</dt><dd>the moment you decide</dd>
      <dt>How</dt><dd>${how}</dd>
      <dt>What</dt><dd>exactly this request, by its SHA‑256 <code class="hash">${hash}</code></dd>
    </dl>
  </div>`;
}

/**
 * @param {{ held: HeldCall | Waits }} props
 */
function WhoUntil({ held }) {
  const { agent, request, expires_at } = held;
  const { name, parent } = agent;
  const approvers = describeApprovers(held);
  return html`<section class="part who"><dl class="facts">
    <dt>Agent</dt><dd><span class="theirs">${visibleLine(name)}</span>${parent && html`<span class="quiet">, a child of <span class="theirs">${visibleLine(parent.name)}</span></span>`}</dd>
    ${request?.caller && html`<dt>On behalf</dt><dd class="on-behalf">${forWhom(request.caller)}</dd>`}
    ${approvers && html`<dt>Approvers</dt><dd class="approvers">${approvers}</dd>`}
    ${expires_at && html`<dt>Waits until</dt><dd>${formatMoment(expires_at)}</dd>`}
  </dl></section>`;
}

/** Which parts were shown completely. @typedef {{ recipients?: boolean, body?: boolean }} Seen */

/** @type {Seen} */
const NOTHING = {};
/** @type {(seen: boolean) => void} */
const inSilence = () => {};

/**
 * `held`: the response of `GET /owner/approvals/{id}` or `GET /approve/{id}/request` while the call waits. `onSeen` receives whether everything was
 * shown: until it is true, Approve stays disabled. `who`, `how`: for what will be recorded. Use the `request_hash` as its key, so that another
 * request resets the state.
 *
 * @param {{ held: HeldCall | Waits, onSeen?: (seen: boolean) => void, who?: string, how?: string }} props
 */
export function RequestView({ held, onSeen = inSilence, who = 'you', how = 'in the console' }) {
  const { request, agent, platform, platform_name, connection, reason, request_hash: hash } = held;
  const [seen, setSeen] = useState(NOTHING);
  const hear = (/** @type {keyof Seen} */ part) => (/** @type {boolean} */ now) =>
    setSeen((before) => (before[part] === now ? before : { ...before, [part]: now }));
  const allSeen =
    request !== null &&
    Boolean(seen.recipients || request.recipients.length === 0) &&
    Boolean(seen.body || request.body === null);
  useLayoutEffect(() => onSeen(allSeen), [allSeen]);
  if (!request)
    return html`<div class="request-view"><p class="notice" data-kind="bad">
      The stored request was altered and cannot be read. Deny it; the agent may ask again.
    </p></div>`;
  const headers = Object.entries(request.headers);
  const label = typeof connection === 'string' ? connection : connection?.label;
  const changed = changedTexts(held);
  return html`<div class="request-view sheet">
    ${changed.length > 0 && html`<section class="part" role="status" id="changed-since">${changed.map((text) => html`<p class="odd small" key=${text}>${visibleLine(text)}</p>`)}</section>`}
    <section class="part">
      <${Call} request=${request} platform=${platform_name} />
      ${
        // Omitted when the list is empty, also on platforms that name recipients only in some calls.
        request.recipients.length > 0 &&
        html`<dl class="facts"><dt>Recipients</dt><dd><${Recipients} recipients=${request.recipients} onSeen=${hear('recipients')} /></dd></dl>`
      }
    </section>
    <${AgentText} kind="has-body">
      ${request.upload ? html`<${Heading}>Body<//><p class="theirs small">${visibleLine(describeUpload(request.upload))}</p><p class="small">SHA-256 <code>${request.upload.sha256}</code></p>` : request.body === null ? html`<${Heading}>No body<//>` : html`<${Body} body=${request.body} hash=${hash} onSeen=${hear('body')} />`}
    <//>
    <${OriginalRequest} held=${held} />
    ${
      reason &&
      html`<${AgentText} title="The agent’s own words" kind="has-reason">
        <p class="quiet small">Why it wants this. Nobody checked it.</p>
        <${Lines} text=${reason} label="The agent’s own words" />
        <${Unseen} text=${reason} />
      <//>`
    }
    ${
      headers.length > 0 &&
      html`<${AgentText} title="Headers" kind="has-headers">
        <${Box} as="dl" class="parameters small" label="Headers">
          ${headers.map(([name, value]) => html`<dt class="theirs">${visibleLine(name)}</dt><dd class="theirs">${visibleLine(value)}</dd>`)}
        <//>
      <//>`
    }
    <${WhoUntil} held=${held} />
    <details class="part details">
      <summary>Details: rule, scope, connection, what is recorded</summary>
      <dl class="facts">
        <dt>Held by</dt><dd><${HoldReasons} because=${held.held_because} /></dd>
        <dt>Scope</dt><dd><code class="theirs">${visibleLine(held.scope)}</code></dd>
        <dt>Platform’s id</dt><dd><code class="theirs">${visibleLine(platform)}</code></dd>
        ${label && html`<dt>Connection</dt><dd class="theirs">${visibleLine(label)}</dd>`}
        <dt>Agent’s id</dt><dd><a href=${`/console/agents/${agent.agent_id}`}><code class="theirs">${agent.agent_id}</code></a></dd>
      </dl>
      <${Recorded} hash=${hash} who=${who} how=${how} />
    </details>
  </div>`;
}
