/** Describes, for an exported file, what affects decisions and is in no section of a file. */
import type { Present } from './present.ts';

/** Returns a line for each. `hasStanding`: whether standing approvals are in force. */
export function remarksOnOrganisation({ organisation, platforms, owners }: Present, hasStanding: boolean): string[] {
  const byGroups = owners.filter(({ role_by_groups }) => role_by_groups === 1).length;
  const servers = [...platforms].filter(([, { kind }]) => kind === 'mcp').map(([id]) => id);
  const hours = organisation.approval_ttl_ms / 3_600_000;
  return [
    ...(organisation.agents_stopped === null
      ? []
      : [
          'All agents are stopped here, but this is not in the file: elsewhere they are not stopped. Stop them there in the console, or with POST /owner/agents/suspend-all.',
        ]),
    ...(organisation.restored === null
      ? []
      : [
          'This store was restored and is waiting for its review (agent-broker restored), so no calls are made here. This is not in the file: elsewhere calls are made.',
        ]),
    ...(hasStanding
      ? ['Standing approvals are not in this file: elsewhere the calls that they let pass are held.']
      : []),
    ...(byGroups === 0
      ? []
      : [`Owners by groups of the identity provider are not in this file: ${byGroups} here. They stay as they are.`]),
    ...(hours === 24 ? [] : [`Held calls wait ${hours} hours: set that with POST /owner/organisation.`]),
    ...(organisation.require_user_verification === 1
      ? ['Passkeys have to verify the user: set that with POST /owner/organisation.']
      : []),
    ...(servers.length === 0
      ? []
      : [
          `The accepted tools of ${servers.join(', ')} are not in this file: elsewhere the first list that the server returns is accepted.`,
        ]),
  ];
}
