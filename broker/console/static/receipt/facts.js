// The contents of a receipt, in words.
import { actorOf, describeReason, RESULTS, resultOf } from '/console/activity/row-labels.js';
import { html } from '/console/html.js';
import { Link } from '/console/shell/router.js';
import { exactly } from '/console/shell/time.js';
import { visibleLine } from '/console/visible.js';

/** @typedef {Record<string, unknown>} Json */
/** @typedef {ReadonlyMap<string, string>} Names */

/** @param {unknown} value @returns {Json} */
const object = (value) =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? /** @type {Json} */ (value) : {};
/** @param {unknown} value @returns {Json[]} */
const objects = (value) => (Array.isArray(value) ? value.map(object) : []);
/** @param {unknown} value */
const text = (value) =>
  value === null || value === undefined
    ? undefined
    : visibleLine(typeof value === 'string' ? value : JSON.stringify(value));
/** @param {unknown} value */
const code = (value) => (text(value) === undefined ? undefined : html`<code>${text(value)}</code>`);
/** @param {unknown} seconds */
const moment = (seconds) =>
  typeof seconds === 'number' && Math.abs(seconds) < 1e11 ? exactly(new Date(seconds * 1000).toISOString()) : undefined;

/**
 * Returns the refs of a push that the platform refused; undefined when there are none.
 *
 * @param {Json} payload
 * @returns {unknown[] | undefined}
 */
const refusedIn = ({ refused_refs: refs }) => (Array.isArray(refs) && refs.length > 0 ? refs : undefined);

/** @param {unknown} id @param {Names} names */
function named(id, names) {
  const name = typeof id === 'string' ? names.get(id) : undefined;
  return name === undefined ? code(id) : html`${visibleLine(name)} ${code(id)}`;
}

/**
 * The contents of a receipt with this payload; also of one that does not verify, which is shown as a claim.
 *
 * @param {{ payload: Json, names: Names }} props `names`: names of agents and owners by id
 */
export function ReceiptFacts({ payload, names }) {
  const { agent, platform, scope, connection, method, path, kind, upstream_status, caller, static_key, workload } =
    payload;
  const call = method ? html`<code>${text(method)} ${text(path)}</code> on ${text(platform)}` : undefined;
  const facts = [
    ['Who', agent ? named(agent, names) : text(payload.sub)],
    [
      'For whom',
      caller &&
        `${text(object(caller).identity)} (${object(caller).person_id ? 'a person who gave consent' : 'a person'})`,
    ],
    ['What', call ?? (kind === 'event' && html`${text(platform)} an owner's decision or change`)],
    ['Scope', code(scope)],
    ['Connection', code(connection)],
    ['Decision', decisionOf(payload, names)],
    ['Rules', rulesOf(object(payload.decision))],
    ['Approval', approvalOf(object(payload.approval), names)],
    ['Standing approval', standingOf(object(payload.standing_approval))],
    ['Change', changeOf(object(payload.change), names)],
    ['Platform answered', text(upstream_status)],
    ['Personal data', piiOf(object(payload.pii))],
    [
      'Pushed',
      Array.isArray(payload.pushed_refs) &&
        objects(payload.pushed_refs).map((one) => html`<div>${text(one.action)} ${code(one.ref)}</div>`),
    ],
    ['Refused by the platform', refusedIn(payload)?.map((one) => html`<div>${code(one)}</div>`)],
    ['Report on the push', code(payload.push_report)],
    ['Key of the agent', static_key && html`static key ${code(static_key)}, no signature`],
    ['Key of the agent', workload && html`token of the workload ${code(workload)}, no signature`],
    ['When', moment(payload.iat)],
    ['Session', code(payload.session_id)],
    ['Organisation', code(payload.organisation)],
    ['Signed by', code(payload.iss)],
    ['Audit id', code(payload.jti)],
    ['Hash of the row', code(payload.row_hash)],
    ['Hash of the agent’s reason', code(payload.agent_reason_hash)],
  ];
  return html`<dl class="facts small" id="says">
    ${facts.map(([title, value]) => value && html`<dt>${title}</dt><dd class="theirs">${value}</dd>`)}
  </dl>`;
}

/**
 * Describes the decision as the activity page does: who approved a call, if anybody, and no success when the platform did not accept the call.
 *
 * @param {Json} payload
 * @param {Names} names
 */
function decisionOf(payload, names) {
  const { result, reason, upstream_status: status } = payload;
  const { approval, standing_approval: standing } = payload;
  const flags = {
    ...(approval ? { approval: object(approval) } : {}),
    ...(standing ? { standing_approval: object(standing) } : {}),
    failed: refusedIn(payload) !== undefined,
  };
  const known = typeof result === 'string' && Object.hasOwn(RESULTS, result);
  const badge =
    known &&
    resultOf({
      kind: 'action',
      state: 'final',
      result: /** @type {keyof typeof RESULTS} */ (result),
      reason: text(reason) ?? '',
      upstream_status: typeof status === 'number' ? status : null,
      flags,
    });
  const why = typeof reason === 'string' ? describeReason({ reason, flags }, actorOf({ flags }, names)) : '';
  return html`${badge && html`<span class="badge" data-kind=${badge.kind}>${badge.words}</span> `}${visibleLine(why)} ${code(reason)}`;
}

/** @param {Json} decision */
function rulesOf({ policy, guardrails, matched, evaluated }) {
  if (policy === undefined) return undefined;
  const { name, version } = object(policy);
  const rules = objects(matched).map(
    (rule) =>
      html`<div>${text(rule.source)} ${text(rule.says ?? rule.name)} <span class="quiet">${text(rule.effect)?.replaceAll('_', ' ')}</span></div>`,
  );
  return html`<div>${name === undefined ? 'No policy' : `Policy “${text(name)}”, version ${text(version)}`}; guardrails, version ${text(object(guardrails).version)}</div>
    ${rules.length > 0 ? rules : html`<div class="quiet">no rule matched</div>`}
    ${Array.isArray(evaluated) && html`<div class="quiet">checked: ${evaluated.map((one) => text(one)?.replaceAll('_', ' ')).join(', ')}</div>`}`;
}

/** @param {Json} approval @param {Names} names */
function approvalOf(
  { approval_id, decided_by, decided_at, how, request_hash, hold_audit_id, passkey, channel },
  names,
) {
  if (approval_id === undefined) return undefined;
  const { user_verified: verified } = object(passkey);
  const key = how === 'passkey' ? `, the device ${verified ? 'verified' : 'did not verify'} the person` : '';
  const { name: channelName, kind: channelKind, user } = object(channel);
  const chat = how === 'channel' ? `, in ${text(channelName)} on ${text(channelKind)} as ${text(user)}` : '';
  return html`
    ${decided_by !== undefined && html`<div>Decided by ${named(decided_by, names)} ${how ? `(${text(how)}${key}${chat})` : ''}</div>`}
    ${typeof decided_at === 'string' && !Number.isNaN(Date.parse(decided_at)) && html`<div>${exactly(decided_at)}</div>`}
    ${request_hash !== undefined && html`<div class="quiet">hash of the exact request ${code(request_hash)}</div>`}
    <div><a href=${`/approve/${encodeURIComponent(String(approval_id))}`}>The request</a>
    ${typeof hold_audit_id === 'string' && html` · <${Link} to=${receiptPath(hold_audit_id)}>Receipt of the hold<//>`}</div>`;
}

/**
 * Describes the standing approval that allowed the call, by how many uses were left then; or the one that was given with this approval.
 *
 * @param {Json} standing
 */
const standingOf = ({ id, left, count, until }) =>
  id !== undefined &&
  html`${code(id)} ${left === undefined ? `for ${text(count)} calls, until ${text(until)}` : `${text(left)} left after this call`}`;

/** @param {Json} change @param {Names} names */
function changeOf({ by, how, ...facts }, names) {
  if (by === undefined) return undefined;
  return html`<div>By ${named(by, names)} (${text(how)})</div>
    ${Object.entries(facts).map(([name, value]) => html`<div><span class="quiet">${visibleLine(name.replaceAll('_', ' '))}</span> ${Array.isArray(value) ? value.map((one) => html`<div>${code(one)}</div>`) : code(value)}</div>`)}`;
}

/** @param {Json} pii */
function piiOf({ request, response }) {
  const found = (/** @type {unknown} */ kinds) =>
    Array.isArray(kinds) ? kinds.map(text).join(', ') || 'none seen' : 'not inspected';
  return request === undefined ? undefined : `request: ${found(request)}; answer: ${found(response)}`;
}

/** Returns the page of an audit row's receipt. @param {string} auditId */
export const receiptPath = (auditId) => `/console/receipt?id=${encodeURIComponent(auditId)}`;
