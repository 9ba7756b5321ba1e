/** The OAuth scopes of Slack that calls with a scope need. */
import { slackAdministrationNeeds } from './slack-administration.ts';

const history = ['channels:history', 'groups:history', 'im:history', 'mpim:history'];
const reading = ['channels:read', 'groups:read', 'im:read', 'mpim:read'];
const writing = ['channels:manage', 'channels:write', 'groups:write', 'im:write', 'mpim:write'];

export const slackNeeds = {
  'slack:channels.read': reading,
  'slack:channels.write': [...writing, 'channels:join', 'channels:write.topic', 'groups:write.topic'],
  'slack:channels.members.write': [...writing, 'channels:write.invites', 'groups:write.invites'],
  'slack:channels.archive': writing,
  'slack:connect.invite': ['conversations.connect:write'],
  'slack:messages.read': history,
  'slack:messages.write': ['chat:write'],
  'slack:messages.delete': ['chat:write'],
  'slack:reactions.read': ['reactions:read'],
  'slack:reactions.write': ['reactions:write'],
  'slack:pins.read': ['pins:read'],
  'slack:pins.write': ['pins:write'],
  'slack:bookmarks.read': ['bookmarks:read'],
  'slack:bookmarks.write': ['bookmarks:write'],
  'slack:files.read': ['files:read', 'remote_files:read'],
  'slack:files.write': ['files:write', 'remote_files:write'],
  'slack:files.publish': ['files:write'],
  'slack:files.delete': ['files:write', 'remote_files:write'],
  'slack:search.read': ['search:read'],
  'slack:users.read': ['users:read', 'users.profile:read', 'dnd:read'],
  'slack:users.email.read': ['users:read.email'],
  'slack:profile.write': ['users.profile:write', 'users:write', 'dnd:write'],
  'slack:usergroups.read': ['usergroups:read'],
  'slack:usergroups.write': ['usergroups:write'],
  'slack:reminders.read': ['reminders:read'],
  'slack:reminders.write': ['reminders:write'],
  'slack:canvases.read': ['canvases:read'],
  'slack:canvases.write': ['canvases:write'],
  'slack:canvases.share': ['canvases:write'],
  'slack:canvases.delete': ['canvases:write'],
  'slack:lists.read': ['lists:read'],
  'slack:lists.write': ['lists:write'],
  'slack:lists.delete': ['lists:write'],
  ...slackAdministrationNeeds,
};
