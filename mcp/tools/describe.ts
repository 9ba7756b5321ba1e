/** What the agent may do, in the words of a tool's description. */
import type { Permissions, PlatformPermissions } from '../client/permissions.ts';

/** Models read every description with every request. */
const MOST_CHARACTERS = 4_000;

/** One line a platform. `untold`: the client may not learn it. Undefined: nobody could be asked yet. */
export function describePermissions(permissions: Permissions | 'untold' | undefined): string {
  if (permissions === 'untold')
    return 'You are not told what you may do: take platform and scope from the person you work for.';
  if (permissions === undefined) return 'What you may do now: call list_permissions.';
  if (permissions.platforms.length === 0) return 'You hold no scopes now. Ask for one with request_access.';
  const lines: string[] = [];
  let length = 0;
  for (const platform of permissions.platforms) {
    const line = describePlatform(platform);
    if (length + line.length > MOST_CHARACTERS) break;
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
  const { platformId, platformName, callStyle, requireApproval, constraints } = platform;
  const held = new Set(platform.approvalScopes);
  const maybe = new Set(platform.conditionalScopes);
  const scopes = platform.scopes.map((scope) =>
    !requireApproval && held.has(scope)
      ? `${scope} (waits for a person)`
      : maybe.has(scope)
        ? `${scope} (may wait)`
        : scope,
  );
  const notes = [
    requireApproval ? 'every call waits for a person' : undefined,
    callStyle === 'graphql' ? 'GraphQL: write_platform, POST to /, data {query, variables}' : undefined,
    platform.serverHost === undefined
      ? undefined
      : 'an MCP server: read_platform /tools lists its tools; write_platform, POST to /tools/NAME with the arguments as data',
    constraints === undefined ? undefined : `only ${JSON.stringify(constraints)}`,
    platform.connections !== undefined && platform.connections.length > 1
      ? `connections: ${platform.connections.map(({ connection_id, label }) => `${label ?? 'default'} = ${connection_id}`).join(', ')}`
      : undefined,
  ].filter((note) => note !== undefined);
  const name = platformName === platformId ? platformId : `${platformId} (${platformName})`;
  const list = scopes.length === 0 ? 'no scopes by its default connection' : scopes.join(', ');
  return `- ${name}: ${list}${notes.length === 0 ? '' : ` [${notes.join('; ')}]`}`;
}
