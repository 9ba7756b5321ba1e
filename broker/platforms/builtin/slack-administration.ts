/**
 * Scopes of Slack for administration of a workspace or an Enterprise organisation, for other organisations' workspaces (Slack Connect), and for what an app
 * displays. Methods as in slack.ts; those of `agents.*` from Slack's own client (@slack/web-api 8.2.0). Slack accepts GET and POST for each method: a method
 * that Slack's reference reads by GET is a GET here, and one that changes something is always a POST.
 */

const post = (methods: string): string[] => methods.split(/\s+/).map((method) => `POST /${method}`);
const get = (methods: string): string[] => methods.split(/\s+/).map((method) => `GET /${method}`);

/** Visible to admins only, including logins and invitations. */
const ADMIN_READS = [
  ...get(`admin.analytics.getFile admin.apps.approved.list admin.apps.requests.list admin.apps.restricted.list
    admin.barriers.list admin.conversations.ekm.listOriginalConnectedChannelInfo admin.conversations.getConversationPrefs
    admin.conversations.getTeams admin.conversations.restrictAccess.listGroups admin.conversations.search admin.emoji.list
    admin.inviteRequests.approved.list admin.inviteRequests.denied.list admin.inviteRequests.list
    admin.roles.listAssignments admin.teams.admins.list admin.teams.list admin.teams.owners.list admin.teams.settings.info
    admin.usergroups.listChannels admin.users.getExpiration admin.users.list apps.event.authorizations.list
    team.accessLogs team.billableInfo team.externalTeams.list team.integrationLogs`),
  ...post(`admin.apps.activities.list admin.apps.config.lookup admin.auth.policy.getEntities
    admin.conversations.getCustomRetention admin.conversations.lookup admin.functions.list
    admin.functions.permissions.lookup admin.users.session.getSettings admin.users.session.list
    admin.workflows.permissions.lookup admin.workflows.search apps.manifest.export apps.manifest.validate
    conversations.listConnectInvites conversations.requestSharedInvite.list team.billing.info`),
];

const ADMIN_WRITES = post(`admin.apps.approve admin.apps.clearResolution admin.apps.config.set
  admin.apps.requests.cancel admin.apps.restrict admin.auth.policy.assignEntities admin.auth.policy.removeEntities
  admin.barriers.create admin.barriers.update admin.conversations.archive admin.conversations.bulkArchive
  admin.conversations.bulkMove admin.conversations.convertToPrivate admin.conversations.convertToPublic
  admin.conversations.create admin.conversations.disconnectShared admin.conversations.invite
  admin.conversations.removeCustomRetention admin.conversations.rename admin.conversations.restrictAccess.addGroup
  admin.conversations.restrictAccess.removeGroup admin.conversations.setConversationPrefs
  admin.conversations.setCustomRetention admin.conversations.setTeams admin.conversations.unarchive admin.emoji.add
  admin.emoji.addAlias admin.emoji.rename admin.functions.permissions.set admin.inviteRequests.approve
  admin.inviteRequests.deny admin.roles.addAssignments admin.roles.removeAssignments admin.teams.create
  admin.teams.settings.setDefaultChannels admin.teams.settings.setDescription
  admin.teams.settings.setDiscoverability admin.teams.settings.setIcon admin.teams.settings.setName
  admin.usergroups.addChannels admin.usergroups.addTeams admin.usergroups.removeChannels admin.users.assign
  admin.users.invite admin.users.session.clearSettings admin.users.session.setSettings admin.users.setAdmin
  admin.users.setExpiration admin.users.setOwner admin.users.setRegular admin.users.unsupportedVersions.export
  admin.workflows.collaborators.add admin.workflows.collaborators.remove admin.workflows.unpublish
  apps.manifest.update`);

/** Irreversible removals: of people, sessions, channels with their messages, apps, and the broker's own token. */
const ADMIN_DELETES = post(`admin.apps.uninstall admin.barriers.delete admin.conversations.bulkDelete
  admin.conversations.delete admin.emoji.remove admin.users.remove admin.users.session.invalidate
  admin.users.session.reset admin.users.session.resetBulk apps.manifest.delete auth.revoke`);

export const slackAdministration = {
  'slack:admin.read': ADMIN_READS,
  'slack:admin.write': ADMIN_WRITES,
  'slack:admin.delete': ADMIN_DELETES,
  // Which external people are admitted to the workspace, and on which terms.
  'slack:connect.manage': post(`conversations.acceptSharedInvite conversations.approveSharedInvite
    conversations.declineSharedInvite conversations.externalInvitePermissions.set
    conversations.requestSharedInvite.approve conversations.requestSharedInvite.deny team.externalTeams.disconnect`),
  // What an app displays: dialogs, its home, calls, its threads and code channels, and the results of its functions.
  'slack:apps.write': post(`agents.conversations.archive agents.conversations.create agents.conversations.removeView
    agents.conversations.setCanvasContent agents.conversations.setCommands agents.conversations.setProperties
    agents.conversations.setView agents.sessions.rename agents.sessions.setStatus apps.user.connection.update
    assistant.threads.setStatus assistant.threads.setSuggestedPrompts assistant.threads.setTitle calls.add calls.end
    calls.participants.add calls.participants.remove calls.update dialog.open entity.presentDetails
    functions.completeError functions.completeSuccess views.open views.publish views.push views.update`),
  'slack:lists.share': ['POST /slackLists.access.set', 'POST /slackLists.access.delete'],
};

/** The OAuth scopes that each of them needs, without `admin`, which does not grant these for a token of an Enterprise organisation. */
export const slackAdministrationNeeds = {
  'slack:admin.read': ['admin.users:read', 'admin.conversations:read', 'admin.teams:read', 'admin.apps:read', 'admin'],
  'slack:admin.write': ['admin.users:write', 'admin.conversations:write', 'admin.teams:write', 'admin.apps:write'],
  'slack:admin.delete': ['admin.users:write', 'admin.conversations:write', 'admin.teams:write', 'admin.apps:write'],
  'slack:connect.manage': ['conversations.connect:manage', 'conversations.connect:write'],
  'slack:lists.share': ['lists:write'],
};
