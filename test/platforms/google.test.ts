import { describe, expect, test } from 'vitest';
import type { JsonObject, Method } from '../../broker/policy/facts.ts';
import { recipientRulesFor, refuseRecipients } from '../../broker/policy/recipients.ts';
import { classifierOf, manifestOf, rulesOf } from './classified.ts';

describe('Gmail', () => {
  const ask = classifierOf('gmail');

  test.each([
    ['GET /gmail/v1/users/me/profile', 'gmail:messages.read'],
    ['GET /gmail/v1/users/me/messages', 'gmail:messages.read'],
    ['GET /gmail/v1/users/ann@acme.example/messages/18c1', 'gmail:messages.read'],
    ['GET /gmail/v1/users/me/messages/18c1/attachments/ANGj', 'gmail:messages.read'],
    ['GET /gmail/v1/users/me/threads/18c1', 'gmail:messages.read'],
    ['POST /gmail/v1/users/me/messages/send', 'gmail:messages.send'],
    ['POST /gmail/v1/users/me/drafts', 'gmail:drafts.write'],
    ['POST /gmail/v1/users/me/drafts/send', 'gmail:drafts.send'],
    ['POST /gmail/v1/users/me/messages/18c1/modify', 'gmail:messages.modify'],
    ['POST /gmail/v1/users/me/messages/18c1/trash', 'gmail:messages.modify'],
    ['DELETE /gmail/v1/users/me/messages/18c1', 'gmail:messages.delete'],
    ['POST /gmail/v1/users/me/messages/batchDelete', 'gmail:messages.delete'],
    ['POST /gmail/v1/users/me/messages', 'gmail:messages.insert'],
    ['PATCH /gmail/v1/users/me/labels/Label_1', 'gmail:labels.write'],
    ['GET /gmail/v1/users/me/settings/filters', 'gmail:settings.read'],
    ['PUT /gmail/v1/users/me/settings/vacation', 'gmail:settings.write'],
    ['POST /gmail/v1/users/me/settings/filters', 'gmail:filters.write'],
    ['PUT /gmail/v1/users/me/settings/autoForwarding', 'gmail:forwarding.write'],
    ['POST /gmail/v1/users/me/settings/delegates', 'gmail:delegates.write'],
  ])('%s: %s', (operation, scope) => {
    expect(ask(operation)).toEqual([scope]);
  });

  test.each([
    'POST /gmail/v1/users/me/messages/Send',
    'GET /gmail/v1/users/me/messages/send/x',
    'POST /upload/gmail/v1/users/me/messages/send',
    'POST /batch/gmail/v1',
    'GET /gmail/v1/users/me/settings/cse/keypairs',
    'POST /gmail/v1/users/me/settings/cse/keypairs/k1:obliterate',
    'DELETE /gmail/v1/users/me',
  ])('in no scope: %s', (operation) => {
    expect(ask(operation)).toBe('unclassified');
  });

  test('the recipients of a sent message are those in its header', () => {
    const call = {
      method: 'POST',
      path: '/gmail/v1/users/me/messages/send',
      query: '',
      headers: {},
      body: { raw: 'QQ' },
    } as const;
    expect(recipientRulesFor(rulesOf('gmail'), call)).toMatchObject([
      { pointers: [{ pointer: '/raw', format: 'rfc822-base64url' }], subject: { raw: 'QQ' } },
    ]);
  });

  test.each([
    ['PUT', 'autoForwarding', 'emailAddress', 'email_address'],
    ['POST', 'forwardingAddresses', 'forwardingEmail', 'forwarding_email'],
    ['POST', 'delegates', 'delegateEmail', 'delegate_email'],
    ['POST', 'sendAs', 'sendAsEmail', 'send_as_email'],
  ] as const)(
    '%s settings/%s: both spellings of the recipient, %s and %s, are checked',
    (method, setting, name, other) => {
      const refused = (body: JsonObject) =>
        refuseRecipients(['@acme.example'], rulesOf('gmail'), {
          method,
          path: `/gmail/v1/users/me/settings/${setting}`,
          query: '',
          headers: {},
          body,
        })?.violating;
      expect(refused({ [name]: 'ann@acme.example' })).toBeUndefined();
      expect(refused({ [other]: 'ann@acme.example' })).toBeUndefined();
      expect(refused({ [name]: 'ann@acme.example', [other]: 'x@evil.example' })).toEqual(['x@evil.example']);
    },
  );

  test('a filter has no recipient unless it forwards', () => {
    const filter = (action: JsonObject) =>
      refuseRecipients(['@acme.example'], rulesOf('gmail'), {
        method: 'POST',
        path: '/gmail/v1/users/me/settings/filters',
        query: '',
        headers: {},
        body: { criteria: { from: 'x' }, action },
      })?.violating;
    expect(filter({ addLabelIds: ['L1'] })).toBeUndefined();
    expect(filter({ forward: 'ann@acme.example' })).toBeUndefined();
    expect(filter({ forward: 'x@evil.example' })).toEqual(['x@evil.example']);
  });
});

test.each<[Method, string, JsonObject, string[] | undefined]>([
  ['POST', 'sendAs', { sendAsEmail: 'ann@acme.example', replyToAddress: 'x@evil.example' }, ['x@evil.example']],
  ['PATCH', 'sendAs/ann@acme.example', { replyToAddress: 'bob@acme.example' }, undefined],
  ['PATCH', 'sendAs/ann@acme.example', { reply_to_address: 'x@evil.example' }, ['x@evil.example']],
  ['PATCH', 'sendAs/ann@acme.example', { smtpMsa: { host: 'mail.evil.example' } }, ['mail.evil.example']],
  ['PUT', 'sendAs/ann@acme.example', { displayName: 'Ann', replyToAddress: '' }, undefined],
  ['PUT', 'vacation', { enableAutoReply: false }, undefined],
  ['PUT', 'vacation', { enableAutoReply: true, responseSubject: 'Pay here' }, ['Pay here']],
  ['PUT', 'vacation', { enableAutoReply: true, responseBodyHtml: '<p>Pay here</p>' }, ['<p>Pay here</p>']],
])('%s settings/%s of Gmail with %j under a recipient constraint: %j', (method, setting, body, violating) => {
  const call = { method, path: `/gmail/v1/users/me/settings/${setting}`, query: '', headers: {}, body };
  expect(refuseRecipients(['@acme.example'], rulesOf('gmail'), call)?.violating).toEqual(violating);
});

test.each(['gmail', 'google-calendar'] as const)(
  '%s: headers that charge another project or carry a key are forbidden',
  (name) => {
    const { forbidden_headers } = manifestOf(name);
    expect(forbidden_headers).toEqual(expect.arrayContaining(['x-goog-user-project', 'x-goog-api-key']));
  },
);

describe('Google Calendar', () => {
  const ask = classifierOf('google-calendar');

  test.each([
    ['GET /calendars/primary/events', 'events.read'],
    ['GET /calendars/team@group.calendar.google.com/events/e1', 'events.read'],
    ['GET /calendars/primary/events/e1/instances', 'events.read'],
    ['POST /calendars/primary/events', 'events.write'],
    ['PATCH /calendars/primary/events/e1', 'events.write'],
    ['POST /calendars/primary/events/e1/move', 'events.write'],
    ['POST /calendars/primary/events/quickAdd', 'events.quickadd'],
    ['DELETE /calendars/primary/events/e1', 'events.delete'],
    ['POST /freeBusy', 'freebusy.read'],
    ['GET /users/me/calendarList', 'calendars.read'],
    ['PATCH /calendars/primary', 'calendars.write'],
    ['POST /calendars/primary/clear', 'calendars.delete'],
    ['POST /calendars/c1/transferOwnership', 'calendars.transfer'],
    ['GET /calendars/primary/acl', 'acl.read'],
    ['POST /calendars/primary/acl', 'acl.write'],
    ['POST /calendars/primary/events/watch', 'push.write'],
  ])('%s: %s', (operation, scope) => {
    expect(ask(operation)).toEqual([`google-calendar:${scope}`]);
  });

  test.each([
    'POST /freebusy',
    'GET /calendars/primary/events/',
    'PUT /calendars/primary/events',
    'POST /calendars/primary/events/e1',
    'POST /batch/calendar/v3',
    'GET /calendar/v3/calendars/primary/events',
  ])('in no scope: %s', (operation) => {
    expect(ask(operation)).toBe('unclassified');
  });

  test('attendees, and people with whom a calendar is shared, are recipients', () => {
    const at = (path: string) => ({ method: 'POST', path, query: '', headers: {}, body: {} }) as const;
    const pointers = (path: string) =>
      recipientRulesFor(rulesOf('google-calendar'), at(path)).flatMap((rule) =>
        rule.pointers.map((one) => one.pointer),
      );
    expect(pointers('/calendars/primary/events')).toContain('/attendees/*/email');
    expect(pointers('/calendars/primary/acl')).toEqual(['/scope/value']);
    expect(pointers('/freeBusy')).toEqual([]);
  });

  test.each<[Method, string, JsonObject, string[] | undefined]>([
    ['POST', '/calendars/primary/events', { summary: 'x' }, undefined],
    ['POST', '/calendars/primary/events', { attendees: [{ email: 'ann@acme.example' }] }, undefined],
    ['POST', '/calendars/primary/events', { attendees: [{ email: 'x@evil.example' }] }, ['x@evil.example']],
    ['POST', '/calendars/primary/events', { attendees: [{ id: 'p1' }] }, ['{"id":"p1"}']],
    // Sent to everybody who invites the person meanwhile.
    [
      'POST',
      '/calendars/primary/events',
      { eventType: 'outOfOffice', outOfOfficeProperties: { declineMessage: 'Pay here' } },
      ['Pay here'],
    ],
    [
      'POST',
      '/calendars/primary/events',
      { eventType: 'outOfOffice', outOfOfficeProperties: { autoDeclineMode: 'declineNone' } },
      undefined,
    ],
    [
      'PATCH',
      '/calendars/primary/events/e1',
      { attendees: [{ email: 'ann@acme.example' }], focus_time_properties: { decline_message: 'Pay here' } },
      ['Pay here'],
    ],
    // These reach existing attendees.
    ['PATCH', '/calendars/primary/events/e1', { description: 'x' }, []],
    ['PUT', '/calendars/primary/events/e1', { description: 'x' }, []],
    ['POST', '/calendars/primary/events/quickAdd', {}, []],
    ['POST', '/calendars/primary/acl', { role: 'reader', scope: { type: 'default' } }, []],
    [
      'POST',
      '/calendars/primary/acl',
      { role: 'reader', scope: { type: 'user', value: 'ann@acme.example' } },
      undefined,
    ],
    ['PATCH', '/calendars/primary/events/e1', { attendees: [{ email: 'ann@acme.example' }] }, undefined],
    // Existing attendees are notified, too.
    [
      'PATCH',
      '/calendars/primary/events/e1',
      { attendees: [{ email: 'ann@acme.example' }], attendeesOmitted: true },
      ['true'],
    ],
    [
      'PUT',
      '/calendars/primary/events/e1',
      { attendees: [{ email: 'ann@acme.example' }], attendees_omitted: true },
      ['true'],
    ],
    // The path names the person.
    [
      'PUT',
      '/calendars/primary/acl/user:x@evil.example',
      { role: 'owner', scope: { type: 'user', value: 'ann@acme.example' } },
      ['ann@acme.example'],
    ],
    ['PATCH', '/calendars/primary/acl/user:x@evil.example', { role: 'owner' }, []],
    ['PATCH', '/calendars/primary/acl/default', { scope: { value: 'ann@acme.example' } }, ['ann@acme.example']],
  ])('%s %s %j under a recipient constraint: %j', (method, path, body, violating) => {
    const call = { method, path, query: '', headers: {}, body };
    expect(refuseRecipients(['@acme.example'], rulesOf('google-calendar'), call)?.violating).toEqual(violating);
  });

  test.each([{}, { attendees: [{ email: 'ann@acme.example' }] }, { text: 'ann@acme.example' }])(
    'a text that invites people is refused under a recipient constraint, whatever the body contains: %j',
    (body) => {
      const call = {
        method: 'POST',
        path: '/calendars/primary/events/quickAdd',
        query: 'text=Lunch+with+x@evil.example',
        headers: {},
        body,
      } as const;
      const refused = refuseRecipients(['@acme.example'], rulesOf('google-calendar'), call);
      expect(refused?.violating).toContain('Lunch with x@evil.example');
    },
  );

  test.each<[string, string, string[] | undefined]>([
    ['events/e1/move', 'destination=ann@acme.example', undefined],
    ['events/e1/move', 'destination=x@evil.example&sendUpdates=all', ['x@evil.example']],
    ['events/e1/move', 'destination=ann@acme.example&destination=x@evil.example', ['x@evil.example']],
    ['events/e1/move', 'destination=primary', ['primary']],
    ['transferOwnership', 'newDataOwner=ann@acme.example&useAdminAccess=true', undefined],
    ['transferOwnership', 'newDataOwner=x@evil.example&useAdminAccess=true', ['x@evil.example']],
    ['transferOwnership', 'new_data_owner=x@evil.example&useAdminAccess=true', ['x@evil.example']],
  ])('POST /calendars/c1/%s?%s under a recipient constraint: %j', (path, query, violating) => {
    const call = { method: 'POST', path: `/calendars/c1/${path}`, query, headers: {}, body: undefined } as const;
    expect(refuseRecipients(['@acme.example'], rulesOf('google-calendar'), call)?.violating).toEqual(violating);
  });
});
