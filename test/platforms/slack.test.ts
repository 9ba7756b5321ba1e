import { describe, expect, test } from 'vitest';
import { bodyKinds } from '../../broker/policy/body-kinds.ts';
import type { JsonObject } from '../../broker/policy/facts.ts';
import { recipientRulesFor, refuseRecipients } from '../../broker/policy/recipients.ts';
import { classifierOf, manifestOf, rulesOf } from './classified.ts';

const ask = classifierOf('slack');

test.each([
  ['GET /conversations.list', 'channels.read'],
  ['GET /conversations.history', 'messages.read'],
  ['GET /conversations.replies', 'messages.read'],
  ['POST /chat.postMessage', 'messages.write'],
  ['POST /chat.update', 'messages.write'],
  ['POST /chat.delete', 'messages.delete'],
  ['POST /reactions.add', 'reactions.write'],
  ['GET /users.info', 'users.read'],
  ['GET /users.lookupByEmail', 'users.email.read'],
  ['GET /search.messages', 'search.read'],
  ['POST /conversations.create', 'channels.write'],
  ['POST /conversations.invite', 'channels.members.write'],
  ['POST /conversations.inviteShared', 'connect.invite'],
  ['POST /conversations.archive', 'channels.archive'],
  ['POST /files.sharedPublicURL', 'files.publish'],
  ['POST /files.delete', 'files.delete'],
  ['GET /files-pri/T1-F1/download/a.csv', 'files.read'],
  ['POST /bookmarks.list', 'bookmarks.read'],
  ['POST /usergroups.users.update', 'usergroups.write'],
  // Each further area has its own scope.
  ['GET /team.accessLogs', 'admin.read'],
  ['POST /admin.users.session.list', 'admin.read'],
  ['POST /apps.manifest.export', 'admin.read'],
  ['POST /admin.users.setOwner', 'admin.write'],
  ['POST /admin.roles.addAssignments', 'admin.write'],
  ['POST /admin.conversations.convertToPublic', 'admin.write'],
  ['POST /admin.users.remove', 'admin.delete'],
  ['POST /admin.conversations.bulkDelete', 'admin.delete'],
  ['POST /auth.revoke', 'admin.delete'],
  ['POST /conversations.approveSharedInvite', 'connect.manage'],
  ['POST /team.externalTeams.disconnect', 'connect.manage'],
  ['POST /views.open', 'apps.write'],
  ['POST /agents.conversations.create', 'apps.write'],
  ['POST /slackLists.access.set', 'lists.share'],
  ['GET /openid.connect.userInfo', 'users.email.read'],
])('%s: %s', (operation, scope) => {
  expect(ask(operation)).toEqual([`slack:${scope}`]);
});

test('the contents of a file are read at the host of files, by GET only', () => {
  const path = '/files-pri/T1-F1/download/a.csv';
  expect(ask(`POST ${path}`)).toBe('unclassified');
  expect(manifestOf('slack').base_urls?.['GET /files-pri/**']).toBe('https://files.slack.com');
});

test.each(['conversations.history', 'admin.users.list'])(
  "%s is a read by GET, and by POST as Slack's client sends it",
  (method) => {
    expect(ask(`POST /${method}`)).toEqual(ask(`GET /${method}`));
    expect(ask(`POST /${method}`)).toEqual([expect.stringMatching(/\.read$/)]);
  },
);

// Slack runs writing methods on a GET as well.
test.each([
  'GET /chat.postMessage',
  'GET /chat.delete',
  'GET /conversations.invite',
  'GET /files.delete',
  'GET /admin.users.remove',
  'GET /admin.emoji.remove',
  'GET /views.publish',
  'POST /apps.uninstall',
  'POST /apps.manifest.create',
  'GET /rtm.connect',
  'POST /tooling.tokens.rotate',
  'POST /oauth.v2.access',
  'GET /auth.revoke',
  'POST /chat.postmessage',
  'POST /chat.postMessage/',
  'POST /chat.postMessageX',
  'POST /api/chat.postMessage',
])('in no scope: %s', (operation) => {
  expect(ask(operation)).toBe('unclassified');
});

test.each([
  'files.getUploadURLExternal',
  'files.completeUploadExternal',
  'files.remote.add',
  'files.remote.update',
  'files.remote.remove',
  'dnd.setSnooze',
])('%s takes a form, because Slack does not accept JSON for it', (method) => {
  expect(bodyKinds(rulesOf('slack'), { method: 'POST', path: `/${method}` })).toEqual(['form']);
});

test('methods that are not listed take JSON', () => {
  expect(manifestOf('slack').body).toBeUndefined();
  expect(bodyKinds(rulesOf('slack'), { method: 'POST', path: '/chat.postMessage' })).toBeUndefined();
});

describe('recipients of a call, by id', () => {
  const refused = (path: string, body: JsonObject) =>
    refuseRecipients(['C1', 'C2', 'U1', 'ann@acme.example'], rulesOf('slack'), {
      method: 'POST',
      path,
      query: '',
      headers: {},
      body,
    })?.violating;

  test.each<[string, JsonObject, string[] | undefined]>([
    ['/chat.postMessage', { channel: 'C1', text: 'hi' }, undefined],
    ['/chat.postMessage', { channel: 'c1' }, ['c1']],
    ['/chat.postMessage', { channel: '#general' }, ['#general']],
    ['/chat.postMessage', { channel: '@ann' }, ['@ann']],
    ['/chat.postMessage', { text: 'hi' }, []],
    ['/conversations.invite', { channel: 'C9', users: 'U1,U2' }, ['U2']],
    ['/conversations.open', { users: 'U1' }, undefined],
    ['/conversations.inviteShared', { channel: 'C1', emails: ['ann@acme.example'] }, undefined],
    ['/conversations.inviteShared', { channel: 'C1', emails: ['x@evil.example'] }, ['x@evil.example']],
    ['/conversations.inviteShared', { channel: 'C1', user_ids: ['U9'] }, ['U9']],
    ['/canvases.access.set', { channel_ids: ['C1', 'C9'] }, ['C9']],
    ['/admin.users.invite', { email: 'ann@acme.example', team_id: 'T1' }, undefined],
    ['/admin.users.invite', { email: 'x@evil.example', team_id: 'T1' }, ['x@evil.example']],
    ['/files.remote.share', { external_id: 'X', channels: 'C1,C9' }, ['C9']],
    ['/slackLists.access.set', { list_id: 'F1', user_ids: ['U9'] }, ['U9']],
    ['/chat.startStream', { channel: 'C1' }, undefined],
    ['/chat.startStream', { channel: 'C1', recipient_user_id: 'U9' }, ['U9']],
    ['/admin.users.setOwner', { team_id: 'T1', user_id: 'U9' }, ['U9']],
    ['/admin.users.setAdmin', { team_id: 'T1', user_id: 'U9' }, ['U9']],
    ['/admin.roles.addAssignments', { role_id: 'Rl1', entity_ids: 'T1', user_ids: ['U9'] }, ['U9']],
    ['/admin.workflows.collaborators.add', { workflow_ids: 'Wf1', collaborator_ids: 'U9' }, ['U9']],
    ['/chat.appendStream', { channel: 'C1', markdown_text: 'x' }, undefined],
    ['/chat.appendStream', { channel: 'C9', markdown_text: 'x' }, ['C9']],
    ['/chat.stopStream', { channel: 'C9', markdown_text: 'x' }, ['C9']],
    ['/reactions.add', { channel: 'C9', timestamp: '1', name: 'x' }, ['C9']],
    ['/pins.add', { channel: 'C9', timestamp: '1' }, ['C9']],
    ['/bookmarks.add', { channel_id: 'C1', title: 'x' }, undefined],
    ['/bookmarks.add', { channel_id: 'C9', title: 'x' }, ['C9']],
    ['/bookmarks.edit', { channel_id: 'C9', bookmark_id: 'B1' }, ['C9']],
    ['/reminders.add', { text: 'x', time: 'tomorrow' }, undefined],
    ['/reminders.add', { text: 'x', time: 'tomorrow', user: 'U9' }, ['U9']],
    ['/conversations.create', { name: 'x' }, undefined],
    ['/conversations.create', { name: 'x', user_ids: 'U1,U9' }, ['U9']],
    ['/conversations.rename', { channel: 'C9', name: 'x' }, ['C9']],
    ['/conversations.setTopic', { channel: 'C1', topic: 'x' }, undefined],
    ['/conversations.setTopic', { channel: 'C9', topic: 'x' }, ['C9']],
    ['/conversations.setTopic', { topic: 'x' }, []],
    ['/conversations.setPurpose', { channel: 'C9', purpose: 'x' }, ['C9']],
    ['/usergroups.create', { name: 'x', channels: 'C1,C9' }, ['C9']],
    ['/usergroups.update', { usergroup: 'S1' }, undefined],
    ['/usergroups.update', { usergroup: 'S1', channels: 'C9' }, ['C9']],
    ['/usergroups.users.update', { usergroup: 'S1', users: 'U1,U9' }, ['U9']],
    ['/canvases.create', { title: 'x' }, undefined],
    ['/canvases.create', { title: 'x', channel_id: 'C9' }, ['C9']],
    ['/conversations.canvases.create', { channel_id: 'C9' }, ['C9']],
    ['/files.completeUploadExternal', { files: [{ id: 'F1' }] }, undefined],
    ['/files.completeUploadExternal', { files: [{ id: 'F1' }], channel_id: 'C1' }, undefined],
    ['/files.completeUploadExternal', { files: [{ id: 'F1' }], channels: 'C1,C9' }, ['C9']],
  ])('%s %j: %j', (path, body, violating) => {
    expect(refused(path, body)).toEqual(violating);
  });
});

describe('the conversation of a message is its recipient', () => {
  const call = { method: 'POST', path: '/chat.postMessage', query: '', headers: {}, body: { channel: 'C1' } } as const;

  test('in the body', () => {
    expect(recipientRulesFor(rulesOf('slack'), call)).toMatchObject([{ subject: { channel: 'C1' } }]);
  });

  test('in the query, which Slack merges with the body', () => {
    const both = recipientRulesFor(rulesOf('slack'), { ...call, query: 'channel=C2' });
    expect(both.map(({ subject }) => subject)).toEqual([{ channel: 'C1' }, { channel: 'C2' }]);
  });
});
