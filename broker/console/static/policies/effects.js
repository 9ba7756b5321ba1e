// The effects of a rule on matching calls.

/** @typedef {{ kind: string, words: string, says: string }} Effect */
/** The limit up to which calls pass in each period before the rule applies. @typedef {{ most: number, per: string, of?: string, together?: true }} Limit */
/** Which calls a rule matches; an absent member matches everything. @typedef {{ platforms?: string[], scopes?: string[], methods?: string[], endpoints?: string[], when?: string }} Selection */
/** The earlier calls that a rule looks back at, and for how long after such a call it applies. @typedef {Selection & { within: string }} After */
/** What a rule masks in responses: members of JSON, and kinds of values. @typedef {{ members?: string[], values?: string[] }} Mask */
/** A rule as stored. @typedef {Selection & { name?: string, effect: string, mask?: Mask, limit?: Limit, after?: After, remember?: true, approvers?: number }} Rule */

/** @type {Readonly<Record<string, Effect>>} */
export const EFFECTS = {
  allow: { kind: 'good', words: 'Allow', says: 'The call is made.' },
  require_approval: { kind: 'wait', words: 'Ask a person', says: 'The call waits until a person decides.' },
  deny: { kind: 'bad', words: 'Deny', says: 'The call is refused.' },
  suspend: {
    kind: 'bad',
    words: 'Deny and suspend',
    says: 'The call is refused, and the agent is stopped until an owner resumes it.',
  },
  mask: {
    kind: '',
    words: 'Mask the answer',
    says: 'Other rules decide whether the call is made. What is masked is removed from its answer; an answer that cannot be checked is withheld.',
  },
};

/** Kinds of values that are detected by their format. @type {Readonly<Record<string, string>>} */
export const KINDS = {
  email: 'E-mail addresses',
  phone: 'Telephone numbers',
  card: 'Card numbers',
  iban: 'IBANs',
  national_id: 'US social security numbers',
  api_key: 'Keys and tokens',
};

/** @typedef {'policy' | 'guardrails'} Kind */

/** @type {Readonly<Record<Kind, readonly string[]>>} */
export const EFFECTS_OF = {
  policy: ['allow', 'require_approval', 'deny', 'mask'],
  guardrails: ['require_approval', 'deny', 'suspend', 'mask'],
};

/** Returns the effect; an unknown effect, possible in a rule written as text, is shown as it is. @param {string} effect @returns {Effect} */
export const effectOf = (effect) => EFFECTS[effect] ?? { kind: '', words: effect, says: '' };

/** @param {Pick<Rule, 'name'>} rule @param {number} at its place in the list, from 0 */
export const nameOf = ({ name }, at) => name ?? `rule ${at + 1}`;

/** `100 a day of request.body.amount, of all agents together`. @param {Pick<Limit, 'most' | 'per'> & { of?: string | null, together?: boolean }} limit */
export const limitOf = ({ most, per, of, together }) =>
  `${most} a${per === 'hour' ? 'n' : ''} ${per}${of ? ` of ${of}` : ''}${together ? ', of all agents together' : ''}`;

/** `email, /contacts/0/notes and e-mail addresses`. @param {Mask} mask */
export const maskOf = ({ members = [], values = [] }) =>
  [...members, ...values.map((kind) => KINDS[kind] ?? kind)].join(', ');

/** `for 8h after GET /issues/** with codehost:issues.read`. @param {After} after */
export const afterOf = ({ within, methods, endpoints, scopes, platforms, when }) =>
  [
    `for ${within} after`,
    [methods, endpoints]
      .map((list) => list?.join(', '))
      .filter(Boolean)
      .join(' ') || 'a call',
    ...(scopes ? [`with ${scopes.join(', ')}`] : []),
    ...(platforms ? [`on ${platforms.join(', ')}`] : []),
    ...(when ? [`if ${when}`] : []),
  ].join(' ');
