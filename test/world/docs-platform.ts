/** The platform `docs`, protected by a test's authorization server, in a governance file. */
import type { Answer } from './agent.ts';
import { type AuthorizationServer, CLIENT_ID, CLIENT_SECRET } from './servers/authorization-server.ts';
import type { Organisation } from './world.ts';

export const READ_DOCS = { platform: 'docs', endpoint: '/items', method: 'GET', scope: 'docs:read' };

/** Returns its entry. `more`: members to add or replace. */
export const docsManifest = (server: AuthorizationServer, more: object = {}, scopes = DOCS_SCOPES): object => ({
  kind: 'rest',
  name: 'Docs',
  base_url: `${server.issuer}/api`,
  auth: {
    type: 'oauth2',
    issuer: server.issuer,
    client_id: { env: 'DOCS_ID' },
    client_secret: { env: 'DOCS_SECRET' },
    scopes,
  },
  scopes: { 'docs:read': ['GET /items'], 'docs:write': ['POST /items'] },
  ...more,
});

const DOCS_SCOPES = ['openid', 'email', 'docs.read'];
export const VALUES = { 'env:DOCS_ID': CLIENT_ID, 'env:DOCS_SECRET': CLIENT_SECRET };

/** Applies a governance file as an owner, with the broker's client at the server unless other `values` are given. */
export const govern = (organisation: Organisation, document: object, values: object = VALUES): Promise<Answer> =>
  organisation.ask('POST', '/owner/governance/apply', { text: JSON.stringify(document), values });
