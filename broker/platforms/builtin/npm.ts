/**
 * A registry of npm packages: npmjs.com's, and servers with a compatible API (Verdaccio, Artifactory, GitHub Packages: with `base_url`). Paths: npm's
 * registry API and clients (npm/registry, docs/REGISTRY-API.md; npm/cli, workspaces/libnpm*). The name of a scoped package is one segment, `/@acme%2Fapp`, as
 * in requests of the npm client, or two. Deliberately in no scope: signing in, tokens and their creation, the password and second factor of the account,
 * which return credentials or change them.
 */
import type { ManifestInput } from '../manifest.ts';

/** Account operations with escaped slashes: for a pattern they are one segment, like the name of a package. */
const accounts = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].map((method) => [`${method} /-%2F*/**`, [{ scope: null }]]);

/** Operations of a package with its name in one segment or, for a scoped package, in two. */
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
  // npm's own client sends the name of a scoped package as one segment.
  encoded_slash: true,
  // GitHub Packages redirects to a URL that is signed for some minutes.
  follow: ['GET /download/@*/*/*/*'],
  scopes: {
    'npm:packages.read': [
      ...ofPackage('GET', '', ''),
      ...ofPackage('GET', '', '/*'),
      ...ofPackage('GET', '', '/-/*'),
      // Artifactory's file of a package that was published there: /@acme/app/-/@acme/app-1.0.0.tgz.
      ...ofPackage('GET', '', '/-/@*/*'),
      // GitHub Packages' file of a version: /download/@acme/app/1.0.0/<SHA>.
      'GET /download/@*/*/*/*',
      'GET /-/npm/v1/keys',
      ...ofPackage('GET', '/-/npm/v1/attestations', ''),
    ],
    // A new version, or changed metadata of existing versions: `npm deprecate` sends the package document by the same PUT (npm/cli,
    // lib/commands/deprecate.js), the registry requires the same right for both, and another PUT reverts it.
    'npm:packages.publish': ofPackage('PUT', '', ''),
    // Dependents of the package lose it. `npm owner` changes by the same PUT who may publish it, and the document does not show which of the two is meant.
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
    // Everybody installs the version tagged `latest`.
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
