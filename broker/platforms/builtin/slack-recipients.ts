/**
 * Recipients of Slack calls: a conversation or person, by Slack id; external people are invited by mail. The audience of a topic, a bookmark, a pin or a
 * reaction is the conversation. An edit of a canvas names nobody with whom it is shared.
 */
const id = (pointer: string) => ({ pointer, format: 'id' as const });
const ids = (pointer: string) => ({ pointer, format: 'ids' as const });
const optional = <Pointer extends object>(pointer: Pointer) => ({ ...pointer, optional: true as const });

export const slackRecipients = {
  'POST /chat.postMessage': [id('/channel')],
  'POST /chat.postEphemeral': [id('/channel'), id('/user')],
  'POST /chat.meMessage': [id('/channel')],
  'POST /chat.scheduleMessage': [id('/channel')],
  'POST /chat.update': [id('/channel')],
  'POST /chat.startStream': [id('/channel'), optional(id('/recipient_user_id'))],
  'POST /chat.appendStream': [id('/channel')],
  'POST /chat.stopStream': [id('/channel')],
  'POST /chat.unfurl': [id('/channel')],
  'POST /reactions.add': [id('/channel')],
  'POST /pins.add': [id('/channel')],
  'POST /bookmarks.add': [id('/channel_id')],
  'POST /bookmarks.edit': [id('/channel_id')],
  // Without a user, the reminder is for the caller.
  'POST /reminders.add': [optional(id('/user')), optional(id('/channel'))],
  'POST /conversations.create': [optional(ids('/user_ids'))],
  'POST /conversations.rename': [id('/channel')],
  'POST /conversations.setTopic': [id('/channel')],
  'POST /conversations.setPurpose': [id('/channel')],
  'POST /conversations.open': [id('/channel'), ids('/users')],
  'POST /conversations.invite': [ids('/users')],
  'POST /conversations.inviteShared': ['/emails/*', ids('/user_ids/*')],
  // A file that is shared with no conversation stays private.
  'POST /files.completeUploadExternal': [optional(id('/channel_id')), optional(ids('/channels'))],
  'POST /files.remote.share': [ids('/channels')],
  // Members of a user group join its conversations.
  'POST /usergroups.create': [optional(ids('/channels'))],
  'POST /usergroups.update': [optional(ids('/channels'))],
  'POST /usergroups.users.update': [ids('/users')],
  'POST /canvases.create': [optional(id('/channel_id'))],
  'POST /conversations.canvases.create': [id('/channel_id')],
  'POST /canvases.access.set': [ids('/channel_ids/*'), ids('/user_ids/*')],
  'POST /admin.users.invite': ['/email'],
  'POST /admin.users.assign': [id('/user_id')],
  'POST /admin.conversations.invite': [ids('/user_ids')],
  // People who get more rights.
  'POST /admin.users.setAdmin': [id('/user_id')],
  'POST /admin.users.setOwner': [id('/user_id')],
  'POST /admin.roles.addAssignments': [ids('/user_ids')],
  'POST /admin.workflows.collaborators.add': [ids('/collaborator_ids')],
  'POST /slackLists.access.set': [ids('/channel_ids/*'), ids('/user_ids/*')],
  'POST /calls.participants.add': [id('/users/*/slack_id'), id('/users/*/external_id')],
  'POST /assistant.threads.setStatus': [id('/channel_id')],
  'POST /assistant.threads.setSuggestedPrompts': [id('/channel_id')],
  'POST /assistant.threads.setTitle': [id('/channel_id')],
  'POST /agents.sessions.setStatus': [id('/channel_id')],
  'POST /agents.sessions.rename': [id('/channel_id')],
  'POST /agents.conversations.setView': [id('/channel_id')],
  'POST /agents.conversations.setCanvasContent': [id('/channel')],
  'POST /views.publish': [id('/user_id')],
};
