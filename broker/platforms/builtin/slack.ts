/**
 * Slack's Web API. Methods, their HTTP method and OAuth scopes: docs.slack.dev (slack-ruby/slack-api-ref 2026-08) and Slack's own OpenAPI document
 * (slackapi/slack-api-specs). Slack accepts GET and POST for every method, so each is listed by name, a writing one by POST only, and methods that are not
 * listed (see test/platforms/unscoped-operations.ts for which and why) are in no scope.
 */
import type { ManifestInput } from '../manifest.ts';
import { freeMembers } from './free-members.ts';
import { slackAdministration } from './slack-administration.ts';
import { slackNeeds } from './slack-needs.ts';
import { slackRecipients } from './slack-recipients.ts';

/** Adds POST to methods that read: Slack's reference documents GET, and Slack's own clients use POST; both are one operation, in one scope. */
function readByPost<Scope extends string>(scopes: Record<Scope, readonly string[]>): Record<Scope, string[]> {
  const twins = (operation: string) =>
    /^GET \/[\w.]+$/.test(operation) ? [operation, operation.replace('GET', 'POST')] : [operation];
  return Object.fromEntries(
    Object.entries<readonly string[]>(scopes).map(([scope, operations]) => [scope, operations.flatMap(twins)]),
  ) as Record<Scope, string[]>;
}

export const slack = {
  kind: 'rest',
  name: 'Slack',
  docs: 'https://docs.slack.dev/reference/methods',
  base_url: 'https://slack.com/api',
  auth: { type: 'bearer' },
  // Slack also accepts a token in the body of a POST, and formerly in the query ("Deprecating usage of token as a query string parameter", 2020-11).
  refused_parameters: ['token'],
  failed_if: { at: '/ok', is: false },
  error_body: { ok: false, error: '{detail}' },
  oauth: {
    authorization_endpoint: 'https://slack.com/oauth/v2/authorize',
    token_endpoint: 'https://slack.com/api/oauth.v2.access',
    scope_separator: ',',
    token_type: 'bot',
    account: { url: 'https://slack.com/api/auth.test', pointer: '/team' },
  },
  // Files are uploaded to a URL in the answer, and Slack's own client sends its token there, too.
  // Contents are read at the `url_private` of a file, with the token.
  base_urls: {
    'POST /upload/v1/**': 'https://files.slack.com',
    'GET /files-pri/**': 'https://files.slack.com',
  },
  answer_urls: { 'POST /files.getUploadURLExternal': ['upload_url'] },
  // For uploads, Slack's client treats any 200 as success, and retries for half an hour after anything else but a 429 without a time.
  error_status: { 'POST /upload/v1/**': 429 },
  raw_bodies: ['json', 'form'],
  // Slack does not accept JSON for these; nested values in its forms are JSON texts.
  bodies: {
    'POST /files.getUploadURLExternal': 'form',
    'POST /files.completeUploadExternal': 'form',
    'POST /upload/v1/**': ['multipart', 'bytes'],
    'POST /files.remote.add': 'form',
    'POST /files.remote.update': 'form',
    'POST /files.remote.remove': 'form',
    'POST /dnd.setSnooze': 'form',
  },
  scopes: readByPost({
    'slack:channels.read': [
      'GET /conversations.list',
      'GET /conversations.info',
      'GET /conversations.members',
      'GET /users.conversations',
      'GET /calls.info',
      'POST /agents.conversations.listViews',
    ],
    'slack:channels.write': [
      'POST /conversations.create',
      'POST /conversations.rename',
      'POST /conversations.setTopic',
      'POST /conversations.setPurpose',
      'POST /conversations.join',
      'POST /conversations.leave',
      'POST /conversations.open',
      'POST /conversations.close',
      'POST /conversations.mark',
    ],
    'slack:channels.members.write': ['POST /conversations.invite', 'POST /conversations.kick'],
    'slack:channels.archive': ['POST /conversations.archive', 'POST /conversations.unarchive'],
    // Invites external people to the workspace.
    'slack:connect.invite': ['POST /conversations.inviteShared'],
    'slack:messages.read': [
      'GET /conversations.history',
      'GET /conversations.replies',
      'GET /chat.getPermalink',
      'GET /chat.scheduledMessages.list',
    ],
    'slack:messages.write': [
      'POST /chat.postMessage',
      'POST /chat.postEphemeral',
      'POST /chat.meMessage',
      'POST /chat.update',
      'POST /chat.scheduleMessage',
      'POST /chat.deleteScheduledMessage',
      'POST /chat.startStream',
      'POST /chat.appendStream',
      'POST /chat.stopStream',
      'POST /chat.unfurl',
    ],
    'slack:messages.delete': ['POST /chat.delete'],
    'slack:reactions.read': ['GET /reactions.get', 'GET /reactions.list'],
    'slack:reactions.write': ['POST /reactions.add', 'POST /reactions.remove'],
    'slack:pins.read': ['GET /pins.list'],
    'slack:pins.write': ['POST /pins.add', 'POST /pins.remove'],
    'slack:bookmarks.read': ['POST /bookmarks.list', 'POST /workflows.featured.list'],
    'slack:bookmarks.write': [
      'POST /bookmarks.add',
      'POST /bookmarks.edit',
      'POST /bookmarks.remove',
      'POST /workflows.featured.add',
      'POST /workflows.featured.remove',
      'POST /workflows.featured.set',
    ],
    'slack:files.read': [
      'GET /files.list',
      'GET /files.info',
      'GET /files.remote.list',
      'GET /files.remote.info',
      'GET /files-pri/**',
    ],
    'slack:files.write': [
      'POST /files.getUploadURLExternal',
      'POST /files.completeUploadExternal',
      'POST /upload/v1/**',
      'POST /files.remote.add',
      'POST /files.remote.update',
      'POST /files.remote.share',
      'POST /files.revokePublicURL',
    ],
    // Makes a file readable for anyone who has the link.
    'slack:files.publish': ['POST /files.sharedPublicURL'],
    'slack:files.delete': ['POST /files.delete', 'POST /files.comments.delete', 'POST /files.remote.remove'],
    'slack:search.read': ['GET /search.all', 'GET /search.messages', 'GET /search.files'],
    'slack:users.read': [
      'GET /users.list',
      'GET /users.info',
      'GET /users.getPresence',
      'GET /users.profile.get',
      'GET /bots.info',
      'GET /dnd.info',
      'GET /dnd.teamInfo',
      'GET /migration.exchange',
    ],
    'slack:users.email.read': [
      'GET /users.lookupByEmail',
      'GET /users.identity',
      'GET /openid.connect.userInfo',
      'POST /users.discoverableContacts.lookup',
    ],
    'slack:profile.write': [
      'POST /users.profile.set',
      'POST /users.setPresence',
      'POST /users.setPhoto',
      'POST /users.deletePhoto',
      'POST /dnd.setSnooze',
      'POST /dnd.endSnooze',
      'POST /dnd.endDnd',
    ],
    'slack:usergroups.read': ['GET /usergroups.list', 'GET /usergroups.users.list'],
    'slack:usergroups.write': [
      'POST /usergroups.create',
      'POST /usergroups.update',
      'POST /usergroups.enable',
      'POST /usergroups.disable',
      'POST /usergroups.users.update',
    ],
    'slack:reminders.read': ['GET /reminders.list', 'GET /reminders.info'],
    'slack:reminders.write': ['POST /reminders.add', 'POST /reminders.complete', 'POST /reminders.delete'],
    'slack:team.read': [
      'GET /team.info',
      'GET /team.profile.get',
      'GET /emoji.list',
      'GET /auth.test',
      'GET /api.test',
      'POST /auth.teams.list',
      'POST /team.preferences.list',
      'POST /blocks.validate',
    ],
    'slack:canvases.read': ['POST /canvases.sections.lookup', 'POST /agents.conversations.getCanvas'],
    'slack:canvases.write': ['POST /canvases.create', 'POST /canvases.edit', 'POST /conversations.canvases.create'],
    'slack:canvases.share': ['POST /canvases.access.set', 'POST /canvases.access.delete'],
    'slack:canvases.delete': ['POST /canvases.delete'],
    'slack:lists.read': [
      'POST /slackLists.items.list',
      'POST /slackLists.items.info',
      'POST /slackLists.download.start',
      'POST /slackLists.download.get',
    ],
    'slack:lists.write': [
      'POST /slackLists.create',
      'POST /slackLists.update',
      'POST /slackLists.items.create',
      'POST /slackLists.items.update',
    ],
    'slack:lists.delete': ['POST /slackLists.items.delete', 'POST /slackLists.items.deleteMultiple'],
    ...slackAdministration,
  }),
  needs: slackNeeds,
  recipients: slackRecipients,
  free: freeMembers.slack,
  presets: {
    read: [
      'slack:channels.read',
      'slack:messages.read',
      'slack:reactions.read',
      'slack:pins.read',
      'slack:bookmarks.read',
      'slack:files.read',
      'slack:users.read',
      'slack:team.read',
    ],
    post: [
      'slack:channels.read',
      'slack:messages.read',
      'slack:reactions.read',
      'slack:users.read',
      'slack:messages.write',
      'slack:reactions.write',
    ],
    everything: ['*'],
  },
} satisfies ManifestInput;
