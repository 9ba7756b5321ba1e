/** Parts of the manifest of Jira beside its scopes. */
import type { ManifestInput } from '../manifest.ts';

/** Scopes for reading everything that work on an issue needs. */
const READ_ISSUES = [
  'jira:search.read',
  'jira:issues.read',
  'jira:comments.read',
  'jira:worklogs.read',
  'jira:attachments.read',
  'jira:projects.read',
  'jira:users.read',
  'jira:metadata.read',
];

/** Sets of Jira's scopes that are granted together. */
export const jiraPresets = {
  read: [...READ_ISSUES, 'jira:filters.read', 'jira:boards.read'],
  issues: [
    ...READ_ISSUES,
    'jira:issues.create',
    'jira:issues.write',
    'jira:issues.transition',
    'jira:comments.write',
    'jira:worklogs.write',
  ],
  everything: ['*'],
};

const [readWork, writeWork] = [['read:jira-work'], ['write:jira-work']];
const configure = ['manage:jira-configuration'];

/** OAuth scopes, by the scopes that need them. Atlassian, "Jira scopes for OAuth 2.0 (3LO)". */
export const jiraNeeds = {
  'jira:search.read': readWork,
  'jira:issues.read': readWork,
  'jira:comments.read': readWork,
  'jira:worklogs.read': readWork,
  'jira:attachments.read': readWork,
  'jira:projects.read': readWork,
  'jira:filters.read': readWork,
  'jira:dashboards.read': readWork,
  'jira:issues.create': writeWork,
  'jira:issues.write': writeWork,
  'jira:issues.transition': writeWork,
  'jira:issues.archive': writeWork,
  'jira:issues.delete': writeWork,
  'jira:issues.notify': writeWork,
  'jira:comments.write': writeWork,
  'jira:comments.delete': writeWork,
  'jira:worklogs.write': writeWork,
  'jira:worklogs.delete': writeWork,
  'jira:attachments.write': writeWork,
  'jira:attachments.delete': writeWork,
  'jira:filters.write': writeWork,
  'jira:filters.delete': writeWork,
  'jira:users.read': ['read:jira-user', 'read:jira-work'],
  'jira:projects.write': ['manage:jira-project', ...configure],
  'jira:projects.create': configure,
  'jira:projects.delete': [...configure, 'manage:jira-project'],
  'jira:webhooks.read': ['manage:jira-webhook'],
  'jira:webhooks.write': ['manage:jira-webhook'],
} satisfies ManifestInput['needs'];

const id = (pointer: string) => ({ pointer, format: 'id' as const });
/** Switches whose recipients are stored in the issue: under a recipient constraint, a call with one of them is refused. */
const aSwitch = (pointer: string) => ({ ...id(pointer), optional: true });

/** Recipients of notifications: people by id, groups by id or name. */
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

/** "Update project": who may see and change the project and its issues, who is notified, and the project lead, to whom permissions may be granted. */
const MEMBERSHIP = [
  ...['permissionScheme', 'issueSecurityScheme', 'notificationScheme', 'workflowScheme', 'issueTypeScheme'],
  ...['issueTypeScreenScheme', 'fieldConfigurationScheme', 'lead', 'leadAccountId'],
].map((name) => ({ pointer: `/${name}`, scope: 'jira:projects.members.write' }));

/** Who may see a filter, and who may change it. */
const SHARING = ['/sharePermissions', '/editPermissions'].map((pointer) => ({ pointer, scope: 'jira:filters.share' }));

/**
 * Members of calls that need the scope of another operation. "Updating an issue via the JIRA REST APIs": fields are changed by operations, and comments
 * are a field.
 */
export const jiraContentScopes = {
  'PUT /rest/api/3/issue/*': [{ pointer: '/update/comment/remove', scope: 'jira:comments.delete' }],
  'POST /rest/api/3/issue/*/transitions': [{ pointer: '/update/comment/remove', scope: 'jira:comments.delete' }],
  'POST /rest/api/3/filter': SHARING,
  'PUT /rest/api/3/filter/*': SHARING,
  'PUT /rest/api/3/project/*': MEMBERSHIP,
  // "Bulk set issue property" and "Bulk delete issue property": with a key such as `votes`, the path would be that of an issue's votes.
  'PUT /rest/api/3/issue/properties/*': [{ scope: null }],
  'DELETE /rest/api/3/issue/properties/*': [{ scope: null }],
} satisfies ManifestInput['content_scopes'];
