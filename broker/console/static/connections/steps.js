// The steps of connecting a platform: a failed step leaves nothing behind.
/** @typedef {import('../../answers.ts').BuiltIn} BuiltIn */
/** @typedef {import('../../answers.ts').Tested} Tested */
/** @typedef {import('/console/connections/ways.js').Way} Way */
import { ask } from '/console/api.js';

/** @typedef {string | Record<string, string>} Secret */

/**
 * `known`: whether the platform exists. `entry`: the entry of a platform to create. `secrets`: the secrets of its `auth`.
 *
 * @typedef {{
 *   platformId: string, known: boolean, entry: () => Promise<Record<string, unknown>>,
 *   secrets: { client_secret?: string, private_key?: string }, label: string, secret: Secret | undefined, way: Way,
 * }} Plan
 */

/**
 * Creates the platform if it does not exist, and the connection; then tests it, or returns the URL for the consent. A credential that the platform
 * does not accept is not kept. Throws Refused and Unreachable.
 *
 * @param {Plan} plan
 * @returns {Promise<{ connection: { id: string, label: string }, test?: Tested, consentAt?: string }>}
 */
export async function connect(plan) {
  const { platformId, known, label, secret, way } = plan;
  if (!known) await makePlatform(plan);
  /** @type {{ id: string, label: string } | undefined} */
  let made;
  let keep = false;
  try {
    const body = { platform: platformId, label, ...(secret !== undefined && { secret }) };
    made = await ask('POST', '/owner/connections', body);
    if (way === 'oauth') {
      const { authorization_url } = await ask('POST', `/owner/connections/${made.id}/oauth/start`, {});
      keep = true;
      return { connection: made, consentAt: authorization_url };
    }
    const test = await ask('POST', `/owner/connections/${made.id}/test`, {});
    keep = test.ok;
    return { connection: made, test };
  } finally {
    if (made && !keep) await ask('DELETE', `/owner/connections/${made.id}`);
    if (!known && !keep) await ask('DELETE', /** @type {const} */ (`/owner/platforms/${platformId}`));
  }
}

/** @param {Plan} plan */
async function makePlatform({ platformId, entry, secrets }) {
  const needed = Object.keys(secrets).length > 0;
  await ask('POST', '/owner/platforms', { platform: platformId, entry: await entry(), ...(needed && { secrets }) });
}

/** Returns the entry of a built-in platform. `where`: its members that form the address. @param {BuiltIn['builtin']} builtin @param {Record<string, string>} where */
export async function builtInEntry(builtin, where) {
  const path = /** @type {const} */ (`/owner/built-in-platforms/${builtin}/entry?${new URLSearchParams(where)}`);
  return (await ask('GET', path)).entry;
}

/**
 * Tests another credential on a temporary connection, so that a bad credential replaces nothing; stores it when the test succeeds.
 *
 * @param {{ id: string, platform: string }} connection
 * @param {Secret} secret
 */
export async function replaceTested({ id, platform }, secret) {
  const label = `new-credential-${crypto.getRandomValues(new Uint32Array(1))[0]?.toString(16)}`;
  const trial = await ask('POST', '/owner/connections', { platform, label, secret, default: false });
  try {
    const test = await ask('POST', `/owner/connections/${trial.id}/test`, {});
    if (test.ok) await replaceUntested(id, secret);
    return test;
  } finally {
    await ask('DELETE', `/owner/connections/${trial.id}`);
  }
}

/** Stores the credential, then tests it, so that the list shows the result. @param {string} id @param {Secret} secret */
export async function replaceUntested(id, secret) {
  await ask('POST', `/owner/connections/${id}/secret`, { secret });
  await ask('POST', `/owner/connections/${id}/test`, {});
}
