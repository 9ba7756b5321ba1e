/**
 * The Gmail API, version 1: paths and OAuth scopes from Google's discovery document (gmail:v1, August 2026). Uploads under
 * `/upload` and client-side encryption are in no scope.
 */
import type { ManifestInput } from '../manifest.ts';
import { googleErrorBody, googleForbiddenHeaders, googleRefusedParameters } from './google.ts';

const scope = (name: string) => `https://www.googleapis.com/auth/gmail.${name}`;
const everything = 'https://mail.google.com/';

/** Who receives replies to sent messages, and the server through which all messages are sent. */
const ofSender = [
  { pointer: '/replyToAddress', optional: true },
  { pointer: '/smtpMsa/host', format: 'text' as const, optional: true },
];

export const gmail = {
  kind: 'rest',
  name: 'Gmail',
  docs: 'https://developers.google.com/gmail/api/reference/rest',
  base_url: 'https://gmail.googleapis.com',
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
    account: { url: 'https://gmail.googleapis.com/gmail/v1/users/me/profile', pointer: '/emailAddress' },
  },
  scopes: {
    'gmail:messages.read': [
      'GET /gmail/v1/users/*/profile',
      'GET /gmail/v1/users/*/messages',
      'GET /gmail/v1/users/*/messages/*',
      'GET /gmail/v1/users/*/messages/*/attachments/*',
      'GET /gmail/v1/users/*/threads',
      'GET /gmail/v1/users/*/threads/*',
      'GET /gmail/v1/users/*/history',
    ],
    'gmail:messages.send': ['POST /gmail/v1/users/*/messages/send'],
    'gmail:messages.modify': [
      'POST /gmail/v1/users/*/messages/batchModify',
      'POST /gmail/v1/users/*/messages/*/modify',
      'POST /gmail/v1/users/*/messages/*/trash',
      'POST /gmail/v1/users/*/messages/*/untrash',
      'POST /gmail/v1/users/*/threads/*/modify',
      'POST /gmail/v1/users/*/threads/*/trash',
      'POST /gmail/v1/users/*/threads/*/untrash',
    ],
    // Deletes permanently, without the trash.
    'gmail:messages.delete': [
      'DELETE /gmail/v1/users/*/messages/*',
      'DELETE /gmail/v1/users/*/threads/*',
      'POST /gmail/v1/users/*/messages/batchDelete',
    ],
    'gmail:messages.insert': ['POST /gmail/v1/users/*/messages', 'POST /gmail/v1/users/*/messages/import'],
    'gmail:drafts.read': ['GET /gmail/v1/users/*/drafts', 'GET /gmail/v1/users/*/drafts/*'],
    'gmail:drafts.write': [
      'POST /gmail/v1/users/*/drafts',
      'PUT /gmail/v1/users/*/drafts/*',
      'DELETE /gmail/v1/users/*/drafts/*',
    ],
    // A call may consist of the id of a stored draft, whose recipients were chosen by whoever wrote the draft.
    'gmail:drafts.send': ['POST /gmail/v1/users/*/drafts/send'],
    'gmail:labels.read': ['GET /gmail/v1/users/*/labels', 'GET /gmail/v1/users/*/labels/*'],
    'gmail:labels.write': [
      'POST /gmail/v1/users/*/labels',
      'PUT /gmail/v1/users/*/labels/*',
      'PATCH /gmail/v1/users/*/labels/*',
      'DELETE /gmail/v1/users/*/labels/*',
    ],
    'gmail:settings.read': [
      'GET /gmail/v1/users/*/settings/autoForwarding',
      'GET /gmail/v1/users/*/settings/imap',
      'GET /gmail/v1/users/*/settings/language',
      'GET /gmail/v1/users/*/settings/pop',
      'GET /gmail/v1/users/*/settings/vacation',
      'GET /gmail/v1/users/*/settings/delegates/**',
      'GET /gmail/v1/users/*/settings/filters/**',
      'GET /gmail/v1/users/*/settings/forwardingAddresses/**',
      'GET /gmail/v1/users/*/settings/sendAs/**',
    ],
    'gmail:settings.write': [
      'PUT /gmail/v1/users/*/settings/imap',
      'PUT /gmail/v1/users/*/settings/language',
      'PUT /gmail/v1/users/*/settings/pop',
      'PUT /gmail/v1/users/*/settings/vacation',
    ],
    // A filter can forward mail, and an alias can send as somebody else: permanent ways out of the mailbox.
    'gmail:filters.write': ['POST /gmail/v1/users/*/settings/filters', 'DELETE /gmail/v1/users/*/settings/filters/*'],
    'gmail:sendas.write': [
      'POST /gmail/v1/users/*/settings/sendAs',
      'PUT /gmail/v1/users/*/settings/sendAs/*',
      'PATCH /gmail/v1/users/*/settings/sendAs/*',
      'DELETE /gmail/v1/users/*/settings/sendAs/*',
      'POST /gmail/v1/users/*/settings/sendAs/*/verify',
    ],
    'gmail:forwarding.write': [
      'PUT /gmail/v1/users/*/settings/autoForwarding',
      'POST /gmail/v1/users/*/settings/forwardingAddresses',
      'DELETE /gmail/v1/users/*/settings/forwardingAddresses/*',
    ],
    'gmail:delegates.write': [
      'POST /gmail/v1/users/*/settings/delegates',
      'DELETE /gmail/v1/users/*/settings/delegates/*',
    ],
    'gmail:push.write': ['POST /gmail/v1/users/*/watch', 'POST /gmail/v1/users/*/stop'],
  },
  needs: {
    'gmail:messages.read': [scope('readonly'), scope('modify'), scope('metadata'), everything],
    'gmail:messages.send': [scope('send'), scope('compose'), scope('modify'), everything],
    'gmail:messages.modify': [scope('modify'), everything],
    'gmail:messages.delete': [everything],
    'gmail:messages.insert': [scope('insert'), scope('modify'), everything],
    'gmail:drafts.read': [scope('readonly'), scope('compose'), scope('modify'), everything],
    'gmail:drafts.write': [scope('compose'), scope('modify'), everything],
    'gmail:drafts.send': [scope('compose'), scope('modify'), everything],
    'gmail:labels.read': [scope('labels'), scope('readonly'), scope('metadata'), scope('modify'), everything],
    'gmail:labels.write': [scope('labels'), scope('modify'), everything],
    'gmail:settings.read': [scope('settings.basic'), scope('readonly'), scope('modify'), everything],
    'gmail:settings.write': [scope('settings.basic')],
    'gmail:filters.write': [scope('settings.basic')],
    'gmail:sendas.write': [scope('settings.sharing'), scope('settings.basic')],
    'gmail:forwarding.write': [scope('settings.sharing')],
    'gmail:delegates.write': [scope('settings.sharing')],
    'gmail:push.write': [scope('readonly'), scope('metadata'), scope('modify'), everything],
  },
  recipients: {
    'POST /gmail/v1/users/*/messages/send': [{ pointer: '/raw', format: 'rfc822-base64url' }],
    'POST /gmail/v1/users/*/drafts/send': [{ pointer: '/message/raw', format: 'rfc822-base64url' }],
    'POST /gmail/v1/users/*/drafts': [{ pointer: '/message/raw', format: 'rfc822-base64url' }],
    'PUT /gmail/v1/users/*/drafts/*': [{ pointer: '/message/raw', format: 'rfc822-base64url' }],
    'POST /gmail/v1/users/*/settings/filters': [{ pointer: '/action/forward', optional: true }],
    // Google sends mail to the address to verify it.
    'POST /gmail/v1/users/*/settings/sendAs': ['/sendAsEmail', ...ofSender],
    'PUT /gmail/v1/users/*/settings/sendAs/*': ofSender,
    'PATCH /gmail/v1/users/*/settings/sendAs/*': ofSender,
    // Sent to everybody who writes to the mailbox.
    'PUT /gmail/v1/users/*/settings/vacation': ['responseSubject', 'responseBodyPlainText', 'responseBodyHtml'].map(
      (name) => ({ pointer: `/${name}`, format: 'text' as const, optional: true }),
    ),
    'PUT /gmail/v1/users/*/settings/autoForwarding': ['/emailAddress'],
    'POST /gmail/v1/users/*/settings/forwardingAddresses': ['/forwardingEmail'],
    'POST /gmail/v1/users/*/settings/delegates': ['/delegateEmail'],
  },
  presets: {
    read: ['gmail:messages.read', 'gmail:drafts.read', 'gmail:labels.read'],
    drafts: ['gmail:messages.read', 'gmail:drafts.read', 'gmail:labels.read', 'gmail:drafts.write'],
    send: [
      'gmail:messages.read',
      'gmail:drafts.read',
      'gmail:labels.read',
      'gmail:drafts.write',
      'gmail:drafts.send',
      'gmail:messages.send',
    ],
    everything: ['*'],
  },
} satisfies ManifestInput;
