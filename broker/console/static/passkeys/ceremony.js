// Enrolling a passkey, and approving with one. What goes wrong is said in words, with what to do.
/** @typedef {import('/console/vendor/simplewebauthn-browser.js').PublicKeyCredentialCreationOptionsJSON} PublicKeyCredentialCreationOptionsJSON */
/** @typedef {import('/console/vendor/simplewebauthn-browser.js').PublicKeyCredentialRequestOptionsJSON} PublicKeyCredentialRequestOptionsJSON */
import { asError, ask, Refused } from '/console/api.js';
import {
  browserSupportsWebAuthn,
  startAuthentication,
  startRegistration,
} from '/console/vendor/simplewebauthn-browser.js';

const PATH = '/v1/approvals/passkeys';

/** Something that a person has to hear; `cancelled`: they know, because they did it. */
export class CeremonyFailed extends Error {
  /**
   * @param {string} message
   * @param {{ cancelled?: boolean, ended?: boolean }} [what]
   */
  constructor(message, { cancelled = false, ended = false } = {}) {
    super(message);
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
    ? 'This browser has no passkeys. Open the link in another one, or sign in.'
    : 'Passkeys need https. Ask whoever runs the broker to put it behind TLS, or sign in.';
}

/**
 * Approves a held call with a passkey of its agent's owner; `signed` hears that the device has done its part. Answers what
 * `sign/finish` says. Throws CeremonyFailed.
 *
 * @param {string} approvalId
 */
export async function approveWithPasskey(approvalId, signed = () => {}) {
  const optionsJSON = /** @type {PublicKeyCredentialRequestOptionsJSON} */ (
    await step(() => ask('POST', `${PATH}/sign/begin`, { approval_id: approvalId }, { signIn: false }))
  );
  const { response, ...credential } = await step(() => startAuthentication({ optionsJSON }));
  signed();
  const body = { response: { ...credential, response: { ...response } } };
  return await step(() => ask('POST', `${PATH}/sign/finish`, body, { signIn: false }));
}

/**
 * Enrols a passkey of this device for the owner who is signed in. Answers what `register/finish` says. Throws CeremonyFailed.
 *
 * @param {string} deviceName
 */
export async function enrol(deviceName) {
  const optionsJSON = /** @type {PublicKeyCredentialCreationOptionsJSON} */ (
    await step(() => ask('POST', `${PATH}/register/begin`))
  );
  const { response, ...credential } = await step(() => startRegistration({ optionsJSON }));
  const body = { response: { ...credential, response: { ...response } }, device_name: deviceName };
  return await step(() => ask('POST', `${PATH}/register/finish`, body));
}

/**
 * @template T
 * @param {() => Promise<T>} work
 */
async function step(work) {
  try {
    return await work();
  } catch (error) {
    throw inWords(asError(error));
  }
}

/**
 * By the name that WebAuthn gives an error (section 5.1.3, 5.1.4), and by the broker's codes.
 *
 * @param {Error} error
 */
function inWords(error) {
  if (error instanceof Refused)
    return new CeremonyFailed(BROKER[error.code ?? ''] ?? error.message, { ended: ENDED.has(error.code ?? '') });
  const cause = error.cause instanceof Error ? error.cause : error;
  if (cause.name === 'NotAllowedError')
    return new CeremonyFailed(
      'No passkey was used: you cancelled, it took too long, or this device has none for this broker. Nothing was decided; try again.',
      { cancelled: true },
    );
  if (cause.name === 'AbortError')
    return new CeremonyFailed('Stopped. Nothing was decided; try again.', { cancelled: true });
  return new CeremonyFailed(BROWSER[cause.name] ?? error.message);
}

/** @type {Partial<Record<string, string>>} */
const BROKER = {
  not_found:
    'This call can no longer be approved by passkey: it was decided, its time is over, or its passkey was removed.',
  challenge_expired: 'That took more than five minutes. Nothing was decided; try again.',
  counter_regression:
    'The broker refused this passkey: its counter went back, as it would if somebody had copied it. It is disabled. Sign in, remove it, and add a new one.',
  verification_failed: 'The broker could not verify this passkey. Nothing was decided. Try again, or sign in.',
  passkey_exists: 'This passkey is enrolled already.',
  rate_limited: 'Too many tries within a minute. Wait a moment, then try again.',
};
const ENDED = new Set(['already_decided', 'approval_expired', 'not_found']);

/** @type {Partial<Record<string, string>>} */
const BROWSER = {
  InvalidStateError: 'This device has a passkey for this broker already. It is in the list.',
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
