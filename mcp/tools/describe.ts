/** The agent's permissions as text for tool descriptions. */
import type { Granted, Permissions, PlatformPermissions } from '../client/permissions.ts';

/** Limited, because descriptions are part of every model request. */
const MAX_CHARACTERS = 4_000;

/** One line for each platform. `untold`: the client is not allowed to read the permissions. Undefined: not known yet. */
export function describePermissions(permissions: Permissions | 'untold' | undefined): string {
  if (permissions === 'untold')
    return 'Your permissions are not listed here: take platform and scope from the person you work for.';
  if (permissions === undefined) return 'What you may do now: call list_permissions.';
  if (permissions.platforms.length === 0) return 'You hold no scopes now. Ask for one with request_access.';
  const lines: string[] = [];
  let length = 0;
  for (const platform of permissions.platforms) {
    const line = describePlatform(platform);
    if (length + line.length > MAX_CHARACTERS) break;
    lines.push(line);
    length += line.length;
  }
  const left = permissions.platforms.length - lines.length;
  return [
    'What you may do now, by platform:',
    ...lines,
    ...(left > 0 ? [`- and ${left} more: call list_permissions`] : []),
  ].join('\n');
}

function describePlatform(platform: PlatformPermissions): string {
  const { platformId, platformName, callStyle, connections = [] } = platform;
  const own = describeGrant(platform);
  const needsNaming = connections.length > 1 && !connections.some((one) => one.default);
  const notes = [
    own.held,
    callStyle === 'graphql' ? 'GraphQL: write_platform, POST to /, data {query, variables}' : undefined,
    platform.serverHost === undefined
      ? undefined
      : 'an MCP server: read_platform /tools lists its tools; write_platform, POST to /tools/NAME with the arguments as data',
    own.limits,
    connections.some(({ status }) => status === 'per_person')
      ? 'one token per person: name the person in caller'
      : undefined,
    connections.length > 1
      ? `connections: ${connections.map((one) => describeConnection(one, own)).join(', ')}`
      : undefined,
  ].filter((note) => note !== undefined);
  const name = platformName === platformId ? platformId : `${platformId} (${platformName})`;
  const none = needsNaming ? 'only with connection_id' : 'no scopes by its default connection';
  return `- ${name}: ${own.scopes || none}${notes.length === 0 ? '' : ` [${notes.join('; ')}]`}`;
}

type Described = { scopes: string; held: string | undefined; limits: string | undefined };

/** Permissions with a connection, or without naming one. */
function describeGrant({
  scopes,
  requireApproval,
  approvalScopes,
  conditionalScopes,
  constraints,
}: Granted): Described {
  const held = new Set(approvalScopes);
  const maybe = new Set(conditionalScopes);
  const words = scopes.map((scope) =>
    !requireApproval && held.has(scope)
      ? `${scope} (waits for a person)`
      : maybe.has(scope)
        ? `${scope} (may wait)`
        : scope,
  );
  return {
    scopes: words.join(', '),
    held: requireApproval ? 'every call waits for a person' : undefined,
    limits: constraints === undefined ? undefined : `only ${JSON.stringify(constraints)}`,
  };
}

/** The connection's name, and its permissions if they differ from those of calls without a connection. */
function describeConnection(
  connection: NonNullable<PlatformPermissions['connections']>[number],
  own: Described,
): string {
  const { scopes, held, limits } = describeGrant(connection);
  const name = `${connection.label ?? 'default'} = ${connection.connection_id}`;
  if (scopes === own.scopes && held === own.held && limits === own.limits) return name;
  return `${name} (${[scopes, held, limits].filter((note) => note !== undefined).join('; ')})`;
}
