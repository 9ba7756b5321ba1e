// The steps of connecting a platform: what a failed step leaves is removed, or named.
/** @typedef {import('../../answers.ts').BuiltIn} BuiltIn */
/** @typedef {import('../../answers.ts').Tested} Tested */
/** @typedef {import('/console/connections/ways.js').Way} Way */
import { asError, ask } from '/console/api.js';
import { visibleLine } from '/console/visible.js';

/** @typedef {string | Record<string, string>} Secret */
/** `left`: a sentence about what was stored for the test and could not be removed. @typedef {Tested & { left?: string | undefined }} Tried */

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
 * does not accept is not kept. Throws an error with a message for a person.
 *
 * @param {Plan} plan
 * @returns {Promise<{ connection: { id: string, label: string }, test?: Tried, consentAt?: string }>}
 */
export async function connect(plan) {
  const { platformId, known, label, secret, way } = plan;
  if (!known) await makePlatform(plan);
  /** @type {{ id: string, label: string } | undefined} */
  let made;
  try {
    const body = { platform: platformId, label, ...(secret !== undefined && { secret }) };
    made = await ask('POST', '/owner/connections', body);
    if (way === 'oauth') {
      const { authorization_url } = await ask('POST', `/owner/connections/${made.id}/oauth/start`, {});
      return { connection: made, consentAt: authorization_url };
    }
    const test = await ask('POST', `/owner/connections/${made.id}/test`, {});
    return { connection: made, test: test.ok ? test : { ...test, left: await remove(plan, made) } };
  } catch (thrown) {
    const left = await remove(plan, made);
    throw left === undefined ? thrown : new Error(`${asError(thrown).message} ${left}`, { cause: thrown });
  }
}

/**
 * Removes what was stored. Returns a sentence about what may still be there when that fails: with a lost connection it fails like the step before, and
 * must hide neither its reason nor that a credential stayed.
 *
 * @param {Plan} plan
 * @param {{ id: string } | undefined} made
 */
async function remove({ platformId, known, label }, made) {
  const connection = made && `the connection “${visibleLine(label)}”`;
  try {
    if (made) await ask('DELETE', `/owner/connections/${made.id}`);
    if (!known) await ask('DELETE', /** @type {const} */ (`/owner/platforms/${platformId}`));
    return undefined;
  } catch {
    const left = [connection, !known && `the platform “${visibleLine(platformId)}”`].filter(Boolean).join(' and ');
    return `What was stored may still be there: look under Connections, and remove ${left} before you try again.`;
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
 * @returns {Promise<Tried>}
 */
export async function replaceTested({ id, platform }, secret) {
  const label = `new-credential-${crypto.getRandomValues(new Uint32Array(1))[0]?.toString(16)}`;
  const trial = await ask('POST', '/owner/connections', { platform, label, secret, default: false });
  /** @type {Tested} */
  let test;
  try {
    test = await ask('POST', `/owner/connections/${trial.id}/test`, {});
    if (test.ok) await replaceUntested(id, secret);
  } catch (thrown) {
    const left = await removeTrial(trial);
    throw left === undefined ? thrown : new Error(`${asError(thrown).message} ${left}`, { cause: thrown });
  }
  return { ...test, left: await removeTrial(trial) };
}

/** As `remove`, for a temporary connection. @param {{ id: string, label: string }} trial */
const removeTrial = ({ id, label }) =>
  ask('DELETE', `/owner/connections/${id}`).then(
    () => undefined,
    () => `The temporary connection “${visibleLine(label)}” may still be there: remove it under Connections.`,
  );

/** Stores the credential, then tests it, so that the list shows the result. @param {string} id @param {Secret} secret */
export async function replaceUntested(id, secret) {
  await ask('POST', `/owner/connections/${id}/secret`, { secret });
  // The credential is stored, whatever becomes of the test.
  await ask('POST', `/owner/connections/${id}/test`, {}).catch(() => {});
}
