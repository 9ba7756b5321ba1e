/**
 * Linear's GraphQL API: operations from its public schema (linear/linear packages/sdk 2026-07). A query can reach everything visible to the credential from
 * its root, so the reading scopes limit where a query may begin, not where it ends. Deliberately in no scope: sessions, integrations, OAuth applications, and
 * suspending or deleting people and workspaces.
 */
import type { ManifestInput } from '../manifest.ts';

const several = (operation: 'query' | 'mutation', names: string) =>
  names.split(/\s+/).map((name) => `${operation} ${name}`);

export const linear = {
  kind: 'graphql',
  name: 'Linear',
  docs: 'https://linear.app/developers',
  base_url: 'https://api.linear.app/graphql',
  // Makes Linear return file URLs that open without a credential, and so without any later decision.
  forbidden_headers: ['public-file-urls-expire-in'],
  // A personal API key is the whole value of the header; with OAuth, use auth: { type: oauth2, … }, which sends a Bearer.
  auth: { type: 'header', name: 'Authorization' },
  error_body: { errors: [{ message: '{detail}', extensions: { code: '{code}', userPresentableMessage: '{detail}' } }] },
  oauth: {
    authorization_endpoint: 'https://linear.app/oauth/authorize',
    token_endpoint: 'https://api.linear.app/oauth/token',
    revocation_endpoint: 'https://api.linear.app/oauth/revoke',
    scope_separator: ',',
    token_endpoint_auth_method: 'client_secret_post',
  },
  scopes: {
    'linear:issues.read': several(
      'query',
      `issue issues issueSearch searchIssues issueVcsBranchSearch issueLabel issueLabels issuePriorityValues issueRelation
      issueRelations attachment attachments attachmentsForURL workflowState workflowStates`,
    ),
    'linear:comments.read': several('query', 'comment comments'),
    'linear:projects.read': several(
      'query',
      `project projects searchProjects projectLabel projectLabels projectMilestone projectMilestones projectRelation
      projectRelations projectStatus projectStatuses projectUpdate projectUpdates initiative initiatives initiativeUpdate
      initiativeUpdates`,
    ),
    'linear:cycles.read': several('query', 'cycle cycles'),
    'linear:documents.read': several('query', 'document documents searchDocuments'),
    'linear:customers.read': several(
      'query',
      'customer customers customerNeed customerNeeds customerStatus customerStatuses customerTier customerTiers',
    ),
    'linear:teams.read': several('query', 'team teams teamMembership teamMemberships'),
    'linear:users.read': several('query', 'viewer user users'),
    'linear:workspace.read': several(
      'query',
      'organization customView customViews template templates emoji emojis favorite favorites __schema __type __typename',
    ),
    'linear:notifications.read': several('query', 'notification notifications notificationsUnreadCount'),
    'linear:webhooks.read': several('query', 'webhook webhooks'),
    'linear:audit.read': several('query', 'auditEntries auditEntryTypes'),
    'linear:issues.create': ['mutation issueCreate'],
    'linear:issues.write': several(
      'mutation',
      `issueCreate issueUpdate issueBatchCreate issueBatchUpdate issueArchive issueUnarchive issueAddLabel issueRemoveLabel
      issueSubscribe issueUnsubscribe issueReminder issueRelationCreate issueRelationUpdate issueRelationDelete`,
    ),
    'linear:issues.delete': ['mutation issueDelete'],
    'linear:comments.write': several(
      'mutation',
      'commentCreate commentUpdate commentResolve commentUnresolve reactionCreate reactionDelete',
    ),
    'linear:comments.delete': ['mutation commentDelete'],
    'linear:attachments.write': several(
      'mutation',
      'attachmentCreate attachmentUpdate attachmentLinkURL attachmentLinkGitHubPR',
    ),
    'linear:attachments.delete': ['mutation attachmentDelete'],
    'linear:labels.write': several(
      'mutation',
      'issueLabelCreate issueLabelUpdate projectLabelCreate projectLabelUpdate',
    ),
    'linear:labels.delete': several('mutation', 'issueLabelDelete projectLabelDelete'),
    'linear:projects.write': several(
      'mutation',
      `projectCreate projectUpdate projectUnarchive projectAddLabel projectRemoveLabel projectMilestoneCreate
      projectMilestoneUpdate projectUpdateCreate projectUpdateUpdate initiativeCreate initiativeUpdate
      initiativeUpdateCreate initiativeUpdateUpdate initiativeToProjectCreate`,
    ),
    'linear:projects.delete': several('mutation', 'projectDelete projectMilestoneDelete initiativeDelete'),
    'linear:cycles.write': several('mutation', 'cycleCreate cycleUpdate cycleArchive'),
    'linear:documents.write': several('mutation', 'documentCreate documentUpdate documentUnarchive'),
    'linear:documents.delete': ['mutation documentDelete'],
    'linear:customers.write': several(
      'mutation',
      'customerCreate customerUpdate customerNeedCreate customerNeedUpdate',
    ),
    'linear:customers.delete': several('mutation', 'customerDelete customerNeedDelete'),
    'linear:notifications.write': several('mutation', 'notificationUpdate notificationArchive notificationUnarchive'),
    'linear:teams.write': several('mutation', 'teamCreate teamUpdate workflowStateCreate workflowStateUpdate'),
    'linear:teams.delete': ['mutation teamDelete'],
    'linear:teams.members.write': several('mutation', 'teamMembershipCreate teamMembershipUpdate teamMembershipDelete'),
    'linear:webhooks.write': several('mutation', 'webhookCreate webhookUpdate webhookDelete'),
    'linear:invites.write': several('mutation', 'organizationInviteCreate organizationInviteDelete'),
  },
  needs: {
    'linear:issues.create': ['issues:create', 'write', 'admin'],
    'linear:issues.write': ['write', 'admin'],
    'linear:issues.delete': ['write', 'admin'],
    'linear:comments.write': ['comments:create', 'write', 'admin'],
    'linear:comments.delete': ['write', 'admin'],
    'linear:projects.write': ['write', 'admin'],
    'linear:documents.write': ['write', 'admin'],
    'linear:webhooks.read': ['admin'],
    'linear:webhooks.write': ['admin'],
    'linear:audit.read': ['admin'],
    'linear:invites.write': ['admin'],
  },
  // Moves to the trash; null restores.
  content_scopes: {
    'mutation issueArchive': [{ pointer: '/trash', scope: 'linear:issues.delete' }],
    'mutation issueUpdate': [{ pointer: '/input/trashed', scope: 'linear:issues.delete' }],
    'mutation issueBatchUpdate': [{ pointer: '/input/trashed', scope: 'linear:issues.delete' }],
    'mutation projectUpdate': [{ pointer: '/input/trashed', scope: 'linear:projects.delete' }],
    'mutation initiativeUpdate': [{ pointer: '/input/trashed', scope: 'linear:projects.delete' }],
    'mutation documentUpdate': [{ pointer: '/input/trashed', scope: 'linear:documents.delete' }],
  },
  // Keys of a webhook, with which anybody can sign events that its receiver attributes to Linear, and of a person's calendar, which opens without a sign-in.
  // A query can reach both from a team or a person, in every scope. Whoever creates a webhook may choose the secret.
  masks: { 'query *': ['secret', 'calendarHash'], 'mutation *': ['secret', 'calendarHash'] },
  recipients: { 'mutation organizationInviteCreate': ['/input/email'] },
  presets: {
    read: [
      'linear:issues.read',
      'linear:comments.read',
      'linear:projects.read',
      'linear:cycles.read',
      'linear:documents.read',
      'linear:teams.read',
      'linear:users.read',
      'linear:workspace.read',
    ],
    issues: [
      'linear:issues.read',
      'linear:comments.read',
      'linear:projects.read',
      'linear:cycles.read',
      'linear:teams.read',
      'linear:users.read',
      'linear:issues.create',
      'linear:issues.write',
      'linear:comments.write',
    ],
    everything: ['*'],
  },
} satisfies ManifestInput;
