/** Jira's OAuth scopes, by the scopes that need them. Atlassian, "Jira scopes for OAuth 2.0 (3LO)". */
import type { ManifestInput } from '../manifest.ts';

const [read, write] = [['read:jira-work'], ['write:jira-work']];
const configure = ['manage:jira-configuration'];

export const jiraNeeds = {
  'jira:search.read': read,
  'jira:issues.read': read,
  'jira:comments.read': read,
  'jira:worklogs.read': read,
  'jira:attachments.read': read,
  'jira:projects.read': read,
  'jira:filters.read': read,
  'jira:dashboards.read': read,
  'jira:issues.create': write,
  'jira:issues.write': write,
  'jira:issues.transition': write,
  'jira:issues.archive': write,
  'jira:issues.delete': write,
  'jira:issues.notify': write,
  'jira:comments.write': write,
  'jira:comments.delete': write,
  'jira:worklogs.write': write,
  'jira:worklogs.delete': write,
  'jira:attachments.write': write,
  'jira:attachments.delete': write,
  'jira:filters.write': write,
  'jira:filters.delete': write,
  'jira:users.read': ['read:jira-user', 'read:jira-work'],
  'jira:projects.write': ['manage:jira-project', ...configure],
  'jira:projects.create': configure,
  'jira:projects.delete': [...configure, 'manage:jira-project'],
  'jira:webhooks.read': ['manage:jira-webhook'],
  'jira:webhooks.write': ['manage:jira-webhook'],
} satisfies ManifestInput['needs'];
