/** Scopes for reading everything that work on an issue needs. */
const read = [
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
  read: [...read, 'jira:filters.read', 'jira:boards.read'],
  issues: [
    ...read,
    'jira:issues.create',
    'jira:issues.write',
    'jira:issues.transition',
    'jira:comments.write',
    'jira:worklogs.write',
  ],
  everything: ['*'],
};
