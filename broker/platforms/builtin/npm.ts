/**
 * A registry of npm packages: npmjs.com's, and servers that speak its API (Verdaccio, Artifactory, GitHub Packages: with `base_url`). Paths: npm's
 * registry API and clients (npm/registry, docs/REGISTRY-API.md; npm/cli, workspaces/libnpm*). A scoped package is one segment,
 * `/@acme%2Fapp`, as the npm client asks it, or two. In no scope on purpose: signing in, tokens and how they are made, the
 * password and second factor of the account, which answer with credentials or change them.
 */
import type { ManifestInput } from '../manifest.ts';

/** What the registry is asked of accounts, with its slashes escaped: to a pattern it is one segment, as the name of a package is. */
const accounts = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].map((method) => [`${method} /-%2F*/**`, [{ scope: null }]]);

/** Of a package by its name in one segment or, with a scope, in two. */
const ofPackage = (method: string, before: string, after: string): string[] => [
  `${method} ${before}/*${after}`,
  `${method} ${before}/@*/*${after}`,
];

export const npm = {
  kind: 'rest',
  name: 'npm registry',
  docs: 'https://docs.npmjs.com',
  base_url: 'https://registry.npmjs.org',
  auth: { type: 'bearer' },
  error_body: { error: '{detail}' },
  // The name of a package with a scope is one segment to npm's own client.
  encoded_slash: true,
  scopes: {
    'npm:packages.read': [
      ...ofPackage('GET', '', ''),
      ...ofPackage('GET', '', '/*'),
      ...ofPackage('GET', '', '/-/*'),
      'GET /-/npm/v1/keys',
      ...ofPackage('GET', '/-/npm/v1/attestations', ''),
    ],
    // A new version, or what is said of those that are there: `npm deprecate` sends the document of the package by the same PUT
    // (npm/cli, lib/commands/deprecate.js), the registry asks the same right for it, and another one takes it back.
    'npm:packages.publish': ofPackage('PUT', '', ''),
    // Whoever depends on it stands without it. `npm owner` says by the same PUT who may publish it, which the document does not tell apart.
    'npm:packages.unpublish': [
      ...ofPackage('PUT', '', '/-rev/*'),
      ...ofPackage('DELETE', '', '/-rev/*'),
      ...ofPackage('DELETE', '', '/-/*/-rev/*'),
    ],
    'npm:search.read': ['GET /-/v1/search'],
    'npm:registry.read': ['GET /', 'GET /-/ping'],
    'npm:audit.read': [
      'POST /-/npm/v1/security/advisories/bulk',
      'POST /-/npm/v1/security/audits',
      'POST /-/npm/v1/security/audits/quick',
    ],
    // Tokens are listed by their first characters.
    'npm:account.read': ['GET /-/whoami', 'GET /-/npm/v1/user', 'GET /-/npm/v1/tokens'],
    'npm:tags.read': ofPackage('GET', '/-/package', '/dist-tags'),
    // What `latest` is, everybody installs.
    'npm:tags.write': [
      ...ofPackage('PUT', '/-/package', '/dist-tags/*'),
      ...ofPackage('POST', '/-/package', '/dist-tags/*'),
    ],
    'npm:tags.delete': ofPackage('DELETE', '/-/package', '/dist-tags/*'),
    'npm:access.read': [
      ...ofPackage('GET', '/-/package', '/access'),
      ...ofPackage('GET', '/-/package', '/visibility'),
      ...ofPackage('GET', '/-/package', '/collaborators'),
      'GET /-/org/*/package',
      'GET /-/user/*/package',
      'GET /-/team/*/*/package',
    ],
    'npm:access.write': [
      ...ofPackage('POST', '/-/package', '/access'),
      'PUT /-/team/*/*/package',
      'DELETE /-/team/*/*/package',
    ],
    'npm:orgs.read': ['GET /-/org/*/user', 'GET /-/org/*/team', 'GET /-/team/*/*/user'],
    'npm:orgs.write': ['PUT /-/org/*/user', 'DELETE /-/org/*/user'],
    'npm:teams.write': ['PUT /-/org/*/team', 'DELETE /-/team/*/*', 'PUT /-/team/*/*/user', 'DELETE /-/team/*/*/user'],
  },
  content_scopes: Object.fromEntries(accounts),
  presets: {
    read: ['npm:packages.read', 'npm:search.read', 'npm:registry.read', 'npm:audit.read', 'npm:tags.read'],
    publish: [
      'npm:packages.read',
      'npm:search.read',
      'npm:registry.read',
      'npm:audit.read',
      'npm:tags.read',
      'npm:account.read',
      'npm:packages.publish',
      'npm:tags.write',
    ],
    everything: ['*'],
  },
} satisfies ManifestInput;
