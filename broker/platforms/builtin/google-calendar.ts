/** The Google Calendar API, version 3: paths and OAuth scopes from Google's discovery document (calendar:v3, August 2026). */

import type { ManifestInput } from '../manifest.ts';
import { freeMembers } from './free-members.ts';
import { googleErrorBody, googleForbiddenHeaders, googleRefusedParameters } from './google.ts';

const scope = (name: string) => `https://www.googleapis.com/auth/calendar${name}`;
const everything = scope('');
const writingEvents = [scope('.events'), scope('.events.owned'), scope('.app.created'), everything];
const readingEvents = [scope('.events.owned.readonly'), scope('.events.public.readonly')];

/** Events, `status`: setting it to cancelled deletes the event. */
const cancelled = [{ pointer: '/status', unless: ['confirmed', 'tentative'], scope: 'google-calendar:events.delete' }];

/** Events, `attendeesOmitted`: existing attendees stay invited, and the call does not name them. */
const othersStay = { pointer: '/attendeesOmitted', format: 'text' as const, optional: true };

/** Events of the types `outOfOffice` and `focusTime`: the message is sent to everybody who invites the person to a time within the event. */
const declined = ['outOfOfficeProperties', 'focusTimeProperties'].map((name) => ({
  pointer: `/${name}/declineMessage`,
  format: 'text' as const,
  optional: true,
}));

export const googleCalendar = {
  kind: 'rest',
  name: 'Google Calendar',
  docs: 'https://developers.google.com/workspace/calendar/api/v3/reference',
  base_url: 'https://www.googleapis.com/calendar/v3',
  forbidden_headers: googleForbiddenHeaders,
  refused_parameters: googleRefusedParameters,
  auth: { type: 'bearer' },
  error_body: googleErrorBody,
  oauth: {
    authorization_endpoint: 'https://accounts.google.com/o/oauth2/v2/auth',
    token_endpoint: 'https://oauth2.googleapis.com/token',
    revocation_endpoint: 'https://oauth2.googleapis.com/revoke',
    // Without these parameters there is no refresh token (Google Identity, Using OAuth 2.0 for Web Server Applications).
    authorization_parameters: { access_type: 'offline', prompt: 'consent' },
  },
  scopes: {
    'google-calendar:events.read': [
      'GET /calendars/*/events',
      'GET /calendars/*/events/*',
      'GET /calendars/*/events/*/instances',
    ],
    'google-calendar:events.write': [
      'POST /calendars/*/events',
      'POST /calendars/*/events/import',
      'PUT /calendars/*/events/*',
      'PATCH /calendars/*/events/*',
      'POST /calendars/*/events/*/move',
    ],
    // The text in the query may invite people, which a recipient constraint cannot see.
    'google-calendar:events.quickadd': ['POST /calendars/*/events/quickAdd'],
    'google-calendar:events.delete': ['DELETE /calendars/*/events/*'],
    'google-calendar:freebusy.read': ['POST /freeBusy'],
    'google-calendar:calendars.read': [
      'GET /calendars/*',
      'GET /users/me/calendarList',
      'GET /users/me/calendarList/*',
      'GET /colors',
    ],
    'google-calendar:calendars.write': [
      'POST /calendars',
      'PUT /calendars/*',
      'PATCH /calendars/*',
      'POST /users/me/calendarList',
      'PUT /users/me/calendarList/*',
      'PATCH /users/me/calendarList/*',
      'DELETE /users/me/calendarList/*',
    ],
    // `clear` deletes every event of the primary calendar.
    'google-calendar:calendars.delete': ['DELETE /calendars/*', 'POST /calendars/*/clear'],
    'google-calendar:calendars.transfer': ['POST /calendars/*/transferOwnership'],
    'google-calendar:acl.read': ['GET /calendars/*/acl', 'GET /calendars/*/acl/*'],
    'google-calendar:acl.write': [
      'POST /calendars/*/acl',
      'PUT /calendars/*/acl/*',
      'PATCH /calendars/*/acl/*',
      'DELETE /calendars/*/acl/*',
    ],
    'google-calendar:settings.read': ['GET /users/me/settings', 'GET /users/me/settings/*'],
    'google-calendar:push.write': [
      'POST /calendars/*/events/watch',
      'POST /calendars/*/acl/watch',
      'POST /users/me/calendarList/watch',
      'POST /users/me/settings/watch',
      'POST /channels/stop',
    ],
  },
  content_scopes: {
    'PUT /calendars/*/events/*': cancelled,
    'PATCH /calendars/*/events/*': cancelled,
  },
  needs: {
    'google-calendar:events.read': [scope('.events.readonly'), ...readingEvents, ...writingEvents, scope('.readonly')],
    'google-calendar:events.write': writingEvents,
    'google-calendar:events.quickadd': writingEvents,
    'google-calendar:events.delete': writingEvents,
    'google-calendar:freebusy.read': [scope('.freebusy'), scope('.events.freebusy'), scope('.readonly'), everything],
    'google-calendar:calendars.write': [scope('.calendars'), scope('.calendarlist'), everything],
    'google-calendar:calendars.delete': [scope('.calendars'), everything],
    'google-calendar:acl.read': [scope('.acls.readonly'), scope('.acls'), scope('.readonly'), everything],
    'google-calendar:acl.write': [scope('.acls'), everything],
    'google-calendar:settings.read': [scope('.settings.readonly'), scope('.readonly'), everything],
  },
  recipients: {
    'POST /calendars/*/events': [{ pointer: '/attendees/*/email', optional: true }, ...declined],
    'POST /calendars/*/events/import': [{ pointer: '/attendees/*/email', optional: true }, ...declined],
    // The text contains all the people whom it invites.
    'POST /calendars/*/events/quickAdd': [{ pointer: '/text', format: 'text' }],
    // A change is mailed to existing attendees: the call must list all attendees, and must not omit any.
    'PUT /calendars/*/events/*': ['/attendees/*/email', othersStay, ...declined],
    'PATCH /calendars/*/events/*': ['/attendees/*/email', othersStay, ...declined],
    // In the query, where Google requires it. `destination` is the id of a calendar; for a person's own calendar, that is their address.
    'POST /calendars/*/events/*/move': [{ pointer: '/destination', optional: true }],
    'POST /calendars/*/transferOwnership': [{ pointer: '/newDataOwner', optional: true }],
    'POST /calendars/*/acl': ['/scope/value'],
    // The path names the person, as `user:ann@acme.example`, whatever the body says.
    'PUT /calendars/*/acl/*': [{ pointer: '/scope/value', format: 'text' }],
    'PATCH /calendars/*/acl/*': [{ pointer: '/scope/value', format: 'text' }],
  },
  free: freeMembers.googleCalendar,
  presets: {
    read: [
      'google-calendar:events.read',
      'google-calendar:freebusy.read',
      'google-calendar:calendars.read',
      'google-calendar:settings.read',
    ],
    events: [
      'google-calendar:events.read',
      'google-calendar:freebusy.read',
      'google-calendar:calendars.read',
      'google-calendar:events.write',
      'google-calendar:events.quickadd',
    ],
    everything: ['*'],
  },
} satisfies ManifestInput;
