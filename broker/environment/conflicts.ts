/** Checks for combinations of environment variables that contradict each other. */

/** Returns the contradictions in words, for variables that are each valid; values are not repeated. */
export function contradictions(environment: Readonly<Record<string, string | undefined>>): string[] {
  const has = (name: string) => environment[name] !== undefined && environment[name] !== '';
  const found: string[] = [];
  // `KEY=$UNSET` would otherwise silently create a key file, although the operator meant to give a key.
  if (environment.AGENT_BROKER_MASTER_KEY === '')
    found.push('AGENT_BROKER_MASTER_KEY is set but empty: give it a key, or unset it to use a key file');
  if (has('AGENT_BROKER_MASTER_KEY_PREVIOUS') && !has('AGENT_BROKER_MASTER_KEY'))
    found.push('AGENT_BROKER_MASTER_KEY_PREVIOUS goes with AGENT_BROKER_MASTER_KEY, which is not set');
  if (has('AGENT_BROKER_KEY_FILE') && has('AGENT_BROKER_MASTER_KEY'))
    found.push('AGENT_BROKER_KEY_FILE and AGENT_BROKER_MASTER_KEY are both set: the master key comes from one of them');
  if (has('DATABASE_READ_URL') && !has('DATABASE_URL'))
    found.push('DATABASE_READ_URL goes with DATABASE_URL, which is not set: a store in the data folder has no standby');
  if (has('RATE_LIMIT_URL') && environment.RATE_LIMIT_URL !== 'none' && !has('DATABASE_URL'))
    found.push('RATE_LIMIT_URL goes with DATABASE_URL, which is not set: one process alone counts in its memory');
  if (has('OIDC_ISSUER') && !has('OIDC_CLIENT_ID'))
    found.push(
      'OIDC_ISSUER is set without OIDC_CLIENT_ID: register the broker at the provider, and give its client id',
    );
  for (const name of ['OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET', 'OIDC_SCOPES', 'OIDC_TRUST_EMAIL', 'OIDC_ROLES'])
    if (has(name) && !has('OIDC_ISSUER')) found.push(`${name} goes with OIDC_ISSUER, which is not set`);
  for (const name of ['OIDC_GROUPS_CLAIM', 'OIDC_ROLES_ORGANISATION'])
    if (has(name) && !has('OIDC_ROLES')) found.push(`${name} goes with OIDC_ROLES, which is not set`);
  const nameOf = (address: string) => (URL.canParse(address) ? new URL(address).hostname : undefined);
  const moved = has('PROXY_HOST') ? nameOf(`http://${environment.PROXY_HOST}`) : undefined;
  // Browsers send cookies to every port of a host name, and the command line on this machine uses the loopback names.
  const taken = [nameOf(environment.BASE_URL || 'http://localhost'), 'localhost', '127.0.0.1', '[::1]'];
  if (moved !== undefined && taken.includes(moved))
    found.push(
      'PROXY_HOST is a name by which everything else is reached: give it another one that leads to this broker, or unset it',
    );
  // `OIDC_CLIENT_SECRET=$UNSET` would otherwise silently configure a public client.
  if (environment.OIDC_CLIENT_SECRET === '')
    found.push('OIDC_CLIENT_SECRET is set but empty: give it the secret, or unset it for a public client');
  return found;
}
