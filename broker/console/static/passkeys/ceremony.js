// WebAuthn ceremonies: enrolling a passkey, signing in and deciding with one. Errors have a message that says what to do.
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

/** What did not happen, for the error messages. */
const NOTHING = {
  decided: 'Nothing was decided; try again.',
  signedIn: 'You are not signed in; try again.',
  added: 'No passkey was added; try again.',
  changed: 'Nothing was changed; try again.',
};
/** @typedef {keyof typeof NOTHING} Intent */

/** A failed ceremony, with a message for a person; `cancelled`: the person cancelled it and needs no message. */
export class CeremonyFailed extends Error {
  /**
   * @param {string} message
   * @param {{ cancelled?: boolean, ended?: boolean, cause?: Error }} [what]
   */
  constructor(message, { cancelled = false, ended = false, cause } = {}) {
    super(message, { cause });
    this.cancelled = cancelled;
    /** Whether the held call no longer waits, so that it has to be read again. */
    this.ended = ended;
  }
}

/** Whether the person cancelled the ceremony. */
export const wasCancelled = (/** @type {unknown} */ error) => error instanceof CeremonyFailed && error.cancelled;

/** Whether the ceremony failed because the held call no longer waits. */
export const hasEnded = (/** @type {unknown} */ error) => error instanceof CeremonyFailed && error.ended;

/** Returns why no passkey can be used here at all; undefined when one can. */
export function withoutPasskeys() {
  if (browserSupportsWebAuthn()) return undefined;
  return window.isSecureContext
    ? 'This browser has no passkeys. Open the link in another one, or sign in another way.'
    : 'Passkeys need https. Ask the operator of the broker to put it behind TLS, or sign in another way.';
}

/** Signs in with any owner's passkey on this device. Returns the signed-in owner. Throws CeremonyFailed. */
export async function signInWithPasskey() {
  return await step('signedIn', async () => {
    const response = await touched(await ask('POST', `${ASSERT}/begin`, { purpose: 'sign-in' }, { signIn: false }));
    return await ask('POST', `${ASSERT}/finish`, { purpose: 'sign-in', response }, { signIn: false });
  });
}

/**
 * Decides a held call with a passkey of any owner who may decide; `signed` is called when the device has signed. `session`: the passkey has to
 * belong to the signed-in owner. Returns the current held call. Throws CeremonyFailed.
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
 * Approves a held call together with a standing approval for future calls like it, with a passkey of the signed-in owner. Throws CeremonyFailed.
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
 * Approves a held call with a passkey of its agent's owner, including one that is not discoverable; `signed` is called when the device has signed.
 * Throws CeremonyFailed.
 *
 * @param {string} approvalId
 * @param {string} requestHash the hash of the shown request
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
 * Returns the device's assertion for these options.
 *
 * @param {object} options
 */
async function touched(options) {
  const optionsJSON = /** @type {PublicKeyCredentialRequestOptionsJSON} */ (options);
  const { response, ...credential } = await startAuthentication({ optionsJSON });
  return { ...credential, response: { ...response } };
}

/**
 * Returns an assertion by a passkey of the signed-in owner, which confirms exactly this action when the sign-in is too old. Throws CeremonyFailed.
 *
 * @param {{ purpose: 'add-passkey' } | { purpose: 'remove-passkey', passkey_id: string }} what
 */
export async function confirmed(what) {
  return await step('changed', async () => touched(await ask('POST', `${ASSERT}/begin`, what, { signIn: false })));
}

/**
 * Enrols a passkey of this device for the signed-in owner. Returns the response of `register/finish`. Throws CeremonyFailed.
 *
 * @param {string} deviceName
 * @param {boolean} [byPasskey] whether an existing passkey of the owner confirms it first
 */
export async function enrol(deviceName, byPasskey = false) {
  const proof = byPasskey ? { assertion: await confirmed({ purpose: 'add-passkey' }) } : {};
  return await step('added', () => enrolOnce(deviceName, proof));
}

/** @param {string} deviceName @param {import('../../answers.ts').Body<'POST', '/v1/approvals/passkeys/register/begin'>} proof */
async function enrolOnce(deviceName, proof) {
  const optionsJSON = /** @type {PublicKeyCredentialCreationOptionsJSON} */ (
    await ask('POST', `${PATH}/register/begin`, { ...proof, device_name: deviceName })
  );
  // The broker's options leave it to the device; only a discoverable passkey can sign in and deny.
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
    throw failureOf(asError(error), NOTHING[intent]);
  }
}

/**
 * Converts an error to a message, by the error names of WebAuthn (sections 5.1.3, 5.1.4) and the broker's codes.
 *
 * @param {Error} error
 * @param {string} nothing
 */
function failureOf(error, nothing) {
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

/** Suggests a name for this device from the user agent. */
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
