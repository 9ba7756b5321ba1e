/** The code host: GitHub's REST API (version 2022-11-28) and its GraphQL endpoint, intended for the platform id `codehost`. */

import type { ManifestInput } from '../manifest.ts';
import { freeMembers } from './free-members.ts';
import { githubAdministration } from './github-administration.ts';
import { githubAppPermissions } from './github-app.ts';
import { githubAppOperations } from './github-app-operations.ts';
import { githubCode, githubContentScopes } from './github-code.ts';
import { githubMasks } from './github-masks.ts';
import { githubOrganisations } from './github-organisations.ts';
import { githubPeople } from './github-people.ts';
import { githubRefs } from './github-refs.ts';
import { githubWork } from './github-work.ts';

export const github = {
  kind: 'rest',
  name: 'GitHub',
  docs: 'https://docs.github.com/rest',
  base_url: 'https://api.github.com',
  // Octokit escapes the slashes of refs and of file paths; GitHub accepts both forms.
  encoded_slash: 'as_slash',
  headers: { 'x-github-api-version': '2022-11-28' },
  // Clients select diffs, raw files and text matches with it (REST API, "Media types").
  default_headers: { accept: 'application/vnd.github+json' },
  error_body: { message: '{detail}', documentation_url: 'https://docs.github.com/rest' },
  auth: { type: 'bearer' },
  // `client_id`: together with its secret, which is refused in every query, a GitHub Enterprise Server before 2021 would authenticate another caller by it
  // ("Deprecating API authentication through query parameters", 2020-02-10). `callback`: the answer is a script, in which nothing can be masked (REST API,
  // "Using CORS and JSONP to make cross-origin requests").
  refused_parameters: ['client_id', 'callback'].map((name) => ({ name, in: 'query' as const })),
  oauth: {
    authorization_endpoint: 'https://github.com/login/oauth/authorize',
    token_endpoint: 'https://github.com/login/oauth/access_token',
    token_endpoint_auth_method: 'client_secret_post',
    account: { url: 'https://api.github.com/user', pointer: '/login' },
  },
  graphql: { path: '/graphql' },
  git_base_url: 'https://github.com',
  scopes: { ...githubCode, ...githubWork, ...githubAdministration, ...githubOrganisations, ...githubPeople },
  content_scopes: githubContentScopes,
  app_permissions: githubAppPermissions,
  app_operations: githubAppOperations,
  refs: githubRefs,
  base_urls: { 'POST /repos/*/*/releases/*/assets': 'https://uploads.github.com' },
  // Clients send their key to the `upload_url` of a release (REST API, "Upload a release asset").
  answer_urls: Object.fromEntries(
    [
      'GET /repos/*/*/releases',
      'POST /repos/*/*/releases',
      'PATCH /repos/*/*/releases/*',
      'GET /repos/*/*/releases/*',
      'GET /repos/*/*/releases/tags/*',
    ].map((operation) => [operation, ['upload_url']]),
  ),
  masks: githubMasks,
  bodies: {
    'POST /repos/*/*/releases/*/assets': ['text', 'bytes'],
    'POST /markdown/raw': 'text',
    'PUT /repos/*/*/branches/*/protection/required_status_checks/contexts': ['json', 'list'],
    'POST /repos/*/*/branches/*/protection/required_status_checks/contexts': ['json', 'list'],
    'DELETE /repos/*/*/branches/*/protection/required_status_checks/contexts': ['json', 'list'],
  },
  // "Response 302" of the REST API's reference: each redirects to a URL that is signed for a minute or so. Files too long for `contents` are read with
  // another operation.
  follow: [
    'GET /repos/*/*/tarball/**',
    'GET /repos/*/*/zipball/**',
    'GET /repos/*/*/actions/jobs/*/logs',
    'GET /repos/*/*/actions/runs/*/logs',
    'GET /repos/*/*/actions/runs/*/attempts/*/logs',
    'GET /repos/*/*/actions/artifacts/*/*',
    'GET /repos/*/*/releases/assets/*',
    'GET /repos/*/*/code-scanning/codeql/databases/*',
    'GET /repos/*/*/dependency-graph/sbom/fetch-report/*',
  ],
  // "Scopes for OAuth apps". Reading public content needs no scope, so the reading scopes are not listed.
  needs: {
    'codehost:contents.write': ['repo', 'public_repo'],
    'codehost:workflows.write': ['workflow'],
    'codehost:issues.write': ['repo', 'public_repo'],
    'codehost:issues.comment': ['repo', 'public_repo'],
    'codehost:pulls.write': ['repo', 'public_repo'],
    'codehost:pulls.review': ['repo', 'public_repo'],
    'codehost:pulls.merge': ['repo', 'public_repo'],
    'codehost:statuses.write': ['repo:status', 'repo', 'public_repo'],
    'codehost:deployments.write': ['repo_deployment', 'repo', 'public_repo'],
    'codehost:hooks.read': [
      'read:repo_hook',
      'write:repo_hook',
      'admin:repo_hook',
      'admin:org_hook',
      'repo',
      'public_repo',
    ],
    'codehost:hooks.write': ['write:repo_hook', 'admin:repo_hook', 'admin:org_hook', 'repo', 'public_repo'],
    'codehost:repo.create': ['repo', 'public_repo'],
    'codehost:repo.delete': ['delete_repo'],
    'codehost:packages.read': ['read:packages', 'write:packages'],
    'codehost:packages.delete': ['delete:packages'],
    'codehost:projects.write': ['project'],
    'codehost:gists.write': ['gist'],
    'codehost:gists.delete': ['gist'],
    'codehost:notifications.read': ['notifications', 'repo'],
    'codehost:notifications.write': ['notifications', 'repo'],
    'codehost:account.write': ['user', 'user:email', 'user:follow'],
    'codehost:orgs.members.write': ['admin:org'],
    'codehost:orgs.admin': ['admin:org'],
    'codehost:orgs.delete': ['admin:org'],
    'codehost:teams.write': ['admin:org'],
    'codehost:orgs.admin.read': ['read:org', 'admin:org'],
    'codehost:orgs.settings.write': ['admin:org'],
    'codehost:orgs.secrets.write': ['admin:org'],
    'codehost:orgs.variables.write': ['admin:org'],
    'codehost:orgs.rules.write': ['admin:org'],
    'codehost:orgs.roles.write': ['admin:org'],
    'codehost:runners.write': ['admin:org'],
    'codehost:codespaces.read': ['codespace'],
    'codehost:codespaces.write': ['codespace'],
  },
  free: freeMembers.github,
  presets: {
    read: [
      'codehost:metadata.read',
      'codehost:search.read',
      'codehost:contents.read',
      'codehost:issues.read',
      'codehost:pulls.read',
      'codehost:checks.read',
      'codehost:statuses.read',
      'codehost:releases.read',
      'codehost:actions.read',
      'codehost:projects.read',
      'codehost:users.read',
      'codehost:orgs.read',
    ],
    issues: [
      'codehost:metadata.read',
      'codehost:search.read',
      'codehost:issues.read',
      'codehost:issues.comment',
      'codehost:issues.write',
    ],
    review: [
      'codehost:metadata.read',
      'codehost:search.read',
      'codehost:contents.read',
      'codehost:issues.read',
      'codehost:issues.comment',
      'codehost:pulls.read',
      'codehost:pulls.review',
      'codehost:checks.read',
      'codehost:statuses.read',
      'codehost:actions.read',
    ],
    code: [
      'codehost:metadata.read',
      'codehost:search.read',
      'codehost:contents.read',
      'codehost:contents.write',
      'codehost:issues.read',
      'codehost:issues.comment',
      'codehost:issues.write',
      'codehost:pulls.read',
      'codehost:pulls.write',
      'codehost:pulls.review',
      'codehost:checks.read',
      'codehost:statuses.read',
      'codehost:actions.read',
    ],
    everything: ['*'],
  },
} satisfies ManifestInput;
