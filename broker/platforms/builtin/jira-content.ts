/** Members of Jira calls that need the scope of another operation. */
import type { ManifestInput } from '../manifest.ts';

/** "Update project": who may see and change the project and its issues, who is notified, and the project lead, to whom permissions may be granted. */
const MEMBERSHIP = [
  ...['permissionScheme', 'issueSecurityScheme', 'notificationScheme', 'workflowScheme', 'issueTypeScheme'],
  ...['issueTypeScreenScheme', 'fieldConfigurationScheme', 'lead', 'leadAccountId'],
].map((name) => ({ pointer: `/${name}`, scope: 'jira:projects.members.write' }));

/** Who may see a filter, and who may change it. */
const SHARING = ['/sharePermissions', '/editPermissions'].map((pointer) => ({ pointer, scope: 'jira:filters.share' }));

// "Updating an issue via the JIRA REST APIs": fields are changed by operations, and comments are a field.
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
