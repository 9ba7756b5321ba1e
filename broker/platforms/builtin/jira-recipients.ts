/** Recipients of Jira's notifications: people by id, groups by id or name. */
import type { ManifestInput } from '../manifest.ts';

const id = (pointer: string) => ({ pointer, format: 'id' as const });
/** Switches whose recipients are stored in the issue: under a recipient constraint, a call with one of them is refused. */
const aSwitch = (pointer: string) => ({ ...id(pointer), optional: true });

export const jiraRecipients = {
  'POST /rest/api/3/issue/*/notify': [
    id('/to/users/*/accountId'),
    id('/to/groups/*/name'),
    id('/to/groups/*/groupId'),
    id('/to/groupIds/*'),
    aSwitch('/to/reporter'),
    aSwitch('/to/assignee'),
    aSwitch('/to/watchers'),
    aSwitch('/to/voters'),
  ],
} satisfies ManifestInput['recipients'];
