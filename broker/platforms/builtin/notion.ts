/** The Notion API, version 2025-09-03: paths from Notion's own client (makenotion/notion-sdk-js 5.26). Notion uses POST for reads whose filter needs a body. */

import type { ManifestInput } from '../manifest.ts';
import { freeMembers } from './free-members.ts';

/** Members that move an object to the trash, under current and older names, or delete its contents; `false` restores. */
const trashed = (...members: string[]) =>
  ['in_trash', 'archived', 'is_archived', ...members].map((name) => ({
    pointer: `/${name}`,
    scope: 'notion:blocks.delete',
  }));

/** "Remove a property": removes a column, with its values in every page. */
const columnRemoved = { pointer: '/properties/*', is: null, scope: 'notion:blocks.delete' };

export const notion = {
  kind: 'rest',
  name: 'Notion',
  docs: 'https://developers.notion.com/reference/intro',
  base_url: 'https://api.notion.com/v1',
  headers: { 'notion-version': '2025-09-03' },
  auth: { type: 'bearer' },
  // Notion's client shows the message of an error whose code it knows.
  error_body: { object: 'error', status: '{status}', code: 'restricted_resource', message: '{detail}' },
  oauth: {
    authorization_endpoint: 'https://api.notion.com/v1/oauth/authorize',
    token_endpoint: 'https://api.notion.com/v1/oauth/token',
    revocation_endpoint: 'https://api.notion.com/v1/oauth/revoke',
    authorization_parameters: { owner: 'user' },
    account: { url: 'https://api.notion.com/v1/users/me', pointer: '/bot/workspace_name' },
  },
  bodies: { 'POST /file_uploads/*/send': 'multipart' },
  scopes: {
    'notion:pages.read': ['GET /pages/*', 'GET /pages/*/markdown', 'GET /pages/*/properties/*'],
    'notion:pages.write': ['POST /pages', 'PATCH /pages/*', 'PATCH /pages/*/markdown', 'POST /pages/*/move'],
    'notion:blocks.read': ['GET /blocks/*', 'GET /blocks/*/children'],
    'notion:blocks.write': ['PATCH /blocks/*', 'PATCH /blocks/*/children'],
    // Pages and databases are blocks, too: each is moved to the trash.
    'notion:blocks.delete': ['DELETE /blocks/*'],
    'notion:databases.read': [
      'GET /databases/*',
      'GET /data_sources/*',
      'GET /data_sources/*/templates',
      'POST /data_sources/*/query',
      // Versions before 2025-09-03, for clients that override the version header.
      'POST /databases/*/query',
      'GET /views',
      'GET /views/*',
    ],
    'notion:databases.write': [
      'POST /databases',
      'PATCH /databases/*',
      'POST /data_sources',
      'PATCH /data_sources/*',
      'POST /views',
      'PATCH /views/*',
    ],
    'notion:views.delete': ['DELETE /views/*'],
    'notion:search.read': ['POST /search'],
    'notion:comments.read': ['GET /comments', 'GET /comments/*'],
    'notion:comments.write': ['POST /comments', 'PATCH /comments/*'],
    'notion:comments.delete': ['DELETE /comments/*'],
    'notion:users.read': ['GET /users', 'GET /users/*', 'GET /custom_emojis'],
    'notion:files.read': ['GET /file_uploads', 'GET /file_uploads/*'],
    'notion:files.write': ['POST /file_uploads', 'POST /file_uploads/*/send', 'POST /file_uploads/*/complete'],
  },
  content_scopes: {
    'PATCH /blocks/*': trashed(),
    'PATCH /pages/*': trashed('erase_content'),
    'PATCH /pages/*/markdown': ['replace_content', 'replace_content_range', 'update_content'].map((name) => ({
      pointer: `/${name}/allow_deleting_content`,
      scope: 'notion:blocks.delete',
    })),
    'PATCH /databases/*': [...trashed(), columnRemoved],
    'PATCH /data_sources/*': [...trashed(), columnRemoved],
  },
  free: freeMembers.notion,
  presets: {
    read: ['notion:*.read'],
    write: ['notion:*.read', 'notion:*.write'],
    everything: ['*'],
  },
} satisfies ManifestInput;
