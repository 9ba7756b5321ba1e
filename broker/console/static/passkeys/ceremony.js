// Enrolling a passkey, signing in and deciding with one. What goes wrong is said in words, with what to do.
/** @typedef {import('/console/vendor/simplewebauthn-browser.js').PublicKeyCredentialCreationOptionsJSON} PublicKeyCredentialCreationOptionsJSON */
/** @typedef {import('/console/vendor/simplewebauthn-browser.js').PublicKeyCredentialRequestOptionsJSON} PublicKeyCredentialRequestOptionsJSON */
/** @typedef {import('../../answers.ts').DecidedNow} DecidedNow */
import { asError, ask, Refused } from '/console/api.js';
import {
  browserSupportsWebAuthn,
  startAuthentication,
  startRegistration,
} from '/console/vendor/simplewebauthn-browser.js';

const PATH = '/v1/approvals/passkeys';
const ASSERT = '/owner/passkeys/assert';

/** What did not happen, for the sentences about what went wrong. */
const NOTHING = {
  decided: 'Nothing was decided; try again.',
  signedIn: 'You are not signed in; try again.',
  added: 'No passkey was added; try again.',
  changed: 'Nothing was changed; try again.',
};
/** @typedef {keyof typeof NOTHING} Intent */

/** Something that a person has to hear; `cancelled`: they know, because they did it. */
export class CeremonyFailed extends Error {
  /**
   * @param {string} message
   * @param {{ cancelled?: boolean, ended?: boolean, cause?: Error }} [what]
   */
  constructor(message, { cancelled = false, ended = false, cause } = {}) {
    super(message, { cause });
    this.cancelled = cancelled;
    /** The call itself no longer waits: look at it again. */
    this.ended = ended;
  }
}

/** Whether somebody stopped it themselves. */
export const wasCancelled = (/** @type {unknown} */ error) => error instanceof CeremonyFailed && error.cancelled;

/** Whether the call of a ceremony that failed no longer waits. */
export const hasEnded = (/** @type {unknown} */ error) => error instanceof CeremonyFailed && error.ended;

/** Why no passkey can be used here at all; undefined when one can. */
export function withoutPasskeys() {
  if (browserSupportsWebAuthn()) return undefined;
  return window.isSecureContext
    ? 'This browser has no passkeys. Open the link in another one, or sign in another way.'
    : 'Passkeys need https. Ask whoever runs the broker to put it behind TLS, or sign in another way.';
}

/**
 * Signs in with a passkey of this device, whosever it is. Answers who that is. Throws CeremonyFailed.
 */
export async function signInWithPasskey() {
  return await step('signedIn', async () => {
    const response = await touched(await ask('POST', `${ASSERT}/begin`, { purpose: 'sign-in' }, { signIn: false }));
    return await ask('POST', `${ASSERT}/finish`, { purpose: 'sign-in', response }, { signIn: false });
  });
}

/**
 * Decides a held call with a passkey of whoever may; `signed` hears that the device has done its part. `session`: the passkey has to
 * be one of whoever is signed in. Answers the held call as it is now. Throws CeremonyFailed.
 *
 * @param {{ purpose: 'approve' | 'deny', id: string, requestHash: string, note?: string, session?: boolean }} decision
 * @returns {Promise<DecidedNow>}
 */
export async function decideWithPasskey({ purpose, id, requestHash, note, session = false }, signed = () => {}) {
  return await step('decided', async () => {
    const words = note ? { note } : {};
    const begin = { purpose, approval_id: id, request_hash: requestHash, ...words };
    const response = await touched(await ask('POST', `${ASSERT}/begin`, begin, { signIn: false }));
    signed();
    const decided = session
      ? await ask('POST', `/owner/approvals/${id}/${purpose}`, { assertion: response, ...words })
      : await ask('POST', `${ASSERT}/finish`, { purpose, response, ...words }, { signIn: false });
    return /** @type {DecidedNow} */ (decided);
  });
}

/**
 * Approves a held call along with the next ones like it, with a passkey of whoever is signed in. Throws CeremonyFailed.
 *
 * @param {{ id: string, requestHash: string, standing: import('../../answers.ts').StandingBody, note?: string }} decision
 * @returns {Promise<DecidedNow>}
 */
export async function signStanding({ id, requestHash, standing, note }) {
  return await step('decided', async () => {
    const words = { standing, ...(note && { note }) };
    const begin = /** @type {const} */ ({ purpose: 'standing', approval_id: id, request_hash: requestHash, ...words });
    const response = await touched(await ask('POST', `${ASSERT}/begin`, begin, { signIn: false }));
    return /** @type {DecidedNow} */ (
      await ask('POST', `/owner/approvals/${id}/approve`, { assertion: response, ...words })
    );
  });
}

/**
 * Approves a held call with a passkey of its agent's owner, also with one that is not discoverable; `signed` hears that the device has
 * done its part. Throws CeremonyFailed.
 *
 * @param {string} approvalId
 * @param {string} requestHash of the request that was shown
 */
export async function approveWithOlderPasskey(approvalId, requestHash, signed = () => {}) {
  return await step('decided', async () => {
    const begin = { approval_id: approvalId, request_hash: requestHash };
    const options = await ask('POST', `${PATH}/sign/begin`, begin, { signIn: false });
    const response = await touched(options);
    signed();
    return await ask('POST', `${PATH}/sign/finish`, { response }, { signIn: false });
  });
}

/**
 * What the device answers to these options.
 *
 * @param {object} options
 */
async function touched(options) {
  const optionsJSON = /** @type {PublicKeyCredentialRequestOptionsJSON} */ (options);
  const { response, ...credential } = await startAuthentication({ optionsJSON });
  return { ...credential, response: { ...response } };
}

/**
 * What a passkey of whoever is signed in answers where the sign-in is too old, for exactly this. Throws CeremonyFailed.
 *
 * @param {{ purpose: 'add-passkey' } | { purpose: 'remove-passkey', passkey_id: string }} what
 */
export async function confirmed(what) {
  return await step('changed', async () => touched(await ask('POST', `${ASSERT}/begin`, what, { signIn: false })));
}

/**
 * Enrols a passkey of this device for the owner who is signed in. Answers what `register/finish` says. Throws CeremonyFailed.
 *
 * @param {string} deviceName
 * @param {boolean} [byPasskey] whether one that the owner has confirms it first
 */
export async function enrol(deviceName, byPasskey = false) {
  const proof = byPasskey ? { assertion: await confirmed({ purpose: 'add-passkey' }) } : {};
  return await step('added', () => enrolOnce(deviceName, proof));
}

/** @param {string} deviceName @param {import('../../answers.ts').Body<'POST', '/v1/approvals/passkeys/register/begin'>} proof */
async function enrolOnce(deviceName, proof) {
  const optionsJSON = /** @type {PublicKeyCredentialCreationOptionsJSON} */ (
    await ask('POST', `${PATH}/register/begin`, proof)
  );
  // The specified options leave it to the device; only a discoverable passkey can sign in and deny.
  /** @type {PublicKeyCredentialCreationOptionsJSON['authenticatorSelection']} */
  const authenticatorSelection = {
    ...optionsJSON.authenticatorSelection,
    residentKey: 'required',
    requireResidentKey: true,
  };
  const { response, clientExtensionResults, ...credential } = await startRegistration({
    optionsJSON: { ...optionsJSON, authenticatorSelection },
  });
  const { credProps } = clientExtensionResults;
  const made = {
    ...credential,
    response: { ...response },
    ...(credProps && { clientExtensionResults: { credProps: { ...credProps } } }),
  };
  const body = { response: made, device_name: deviceName };
  return await ask('POST', `${PATH}/register/finish`, body);
}

/**
 * @template T
 * @param {Intent} intent
 * @param {() => Promise<T>} work
 */
async function step(intent, work) {
  try {
    return await work();
  } catch (error) {
    throw inWords(asError(error), NOTHING[intent]);
  }
}

/**
 * By the name that WebAuthn gives an error (section 5.1.3, 5.1.4), and by the broker's codes.
 *
 * @param {Error} error
 * @param {string} nothing
 */
function inWords(error, nothing) {
  if (error instanceof Refused) {
    const code = error.code ?? '';
    return new CeremonyFailed(BROKER[code]?.(nothing) ?? error.message, { ended: ENDED.has(code), cause: error });
  }
  const cause = error.cause instanceof Error ? error.cause : error;
  if (cause.name === 'NotAllowedError')
    return new CeremonyFailed(
      `No passkey was used: you cancelled, it took too long, or this device has none for this broker. ${nothing}`,
      { cancelled: true },
    );
  if (cause.name === 'AbortError') return new CeremonyFailed(`Stopped. ${nothing}`, { cancelled: true });
  return new CeremonyFailed(BROWSER[cause.name] ?? error.message);
}

/** @type {Partial<Record<string, (nothing: string) => string>>} */
const BROKER = {
  not_found: () =>
    'This call can no longer be decided by passkey: it was decided, it expired, or its passkey was removed.',
  challenge_expired: (nothing) => `That took more than five minutes. ${nothing}`,
  counter_regression: () =>
    'The broker refused this passkey: its counter went back, which happens if somebody copied it. It is disabled. Sign in, remove it, and add a new one.',
  verification_failed: (nothing) =>
    `The broker could not verify this passkey. It may have been removed, or be one that cannot do this: then sign in another way, remove it, and add it again. ${nothing}`,
  passkey_exists: () => 'This passkey is enrolled already.',
  rate_limited: () => 'Too many tries within a minute. Wait a moment, then try again.',
};
const ENDED = new Set(['already_decided', 'approval_expired', 'not_found', 'request_changed']);

/** @type {Partial<Record<string, string>>} */
const BROWSER = {
  InvalidStateError:
    'This device has a passkey for this broker already. It is in the list; if it does not work, remove it there and add it again.',
  SecurityError:
    'The browser does not let this address use passkeys. Open the broker by the address in its links, with https.',
  NotSupportedError: 'This device cannot make a passkey of the kind that is needed. Try another device.',
  ConstraintError: 'This device cannot recognise you. Set up a screen lock, or try another device.',
  NotReadableError: 'The device could not read the passkey. Try again.',
  UnknownError: 'The device could not use the passkey. Try again.',
};

/** A name for this device by what the browser says of itself: a suggestion, no more. */
export function suggestedName(agent = navigator.userAgent) {
  const device = DEVICES.find(([pattern]) => pattern.test(agent))?.[1];
  const browser = BROWSERS.find(([pattern]) => pattern.test(agent))?.[1];
  if (!device) return browser ?? 'This device';
  return browser && !PHONES.has(device) ? `${browser} on ${device}` : device;
}

/** @type {[RegExp, string][]} */
const DEVICES = [
  [/iPhone/, 'iPhone'],
  [/iPad/, 'iPad'],
  [/Android.*Mobile/, 'Android phone'],
  [/Android/, 'Android tablet'],
  [/CrOS/, 'Chromebook'],
  [/Macintosh/, 'Mac'],
  [/Windows/, 'Windows'],
  [/Linux/, 'Linux'],
];
const PHONES = new Set(['iPhone', 'iPad', 'Android phone', 'Android tablet', 'Chromebook']);
/** @type {[RegExp, string][]} */
const BROWSERS = [
  [/Edg\//, 'Edge'],
  [/Firefox\//, 'Firefox'],
  [/Chrome\//, 'Chrome'],
  [/Safari\//, 'Safari'],
];
