/** @typedef {import('../../answers.ts').OwnedGrant} OwnedGrant */

/**
 * Returns the grant that the broker changes when a platform and a connection are named, as `selectGrant` finds it; undefined when it makes a new one.
 * Otherwise a grant that somebody takes for a new one would replace what the agent has there.
 *
 * @param {readonly OwnedGrant[]} grants of the agent
 * @param {string} platform
 * @param {string} connection its label; empty: none is named
 * @param {readonly { label: string, default: boolean }[]} connections of the platform
 */
export function grantMeant(grants, platform, connection, connections) {
  const there = grants.filter((one) => one.platform === platform);
  const unnamed = there.find((one) => one.connection === null);
  const on = (/** @type {string | undefined} */ label) => there.find((one) => label && one.connection?.label === label);
  const standard = connections.find((one) => one.default)?.label;
  if (connection !== '') return on(connection) ?? (connection === standard ? unnamed : undefined);
  return (
    unnamed ?? on(standard) ?? (new Set(there.map((one) => one.connection?.label)).size === 1 ? there[0] : undefined)
  );
}
