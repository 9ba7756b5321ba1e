/** The code host: GitHub's REST API (version 2022-11-28) and its GraphQL door, meant for the platform id `codehost`. */
import type { ManifestInput } from '../manifest.ts';
import { githubAdministration } from './github-administration.ts';
import { githubAppPermissions } from './github-app.ts';
import { githubCode, githubContentScopes } from './github-code.ts';
import { githubPeople } from './github-people.ts';
import { githubRefs } from './github-refs.ts';
import { githubWork } from './github-work.ts';

export const github = {
  kind: 'rest',
  name: 'GitHub',
  docs: 'https://docs.github.com/rest',
  base_url: 'https://api.github.com',
  headers: { 'x-github-api-version': '2022-11-28' },
  // Diffs, raw files and text matches are chosen with it (REST API, "Media types").
  default_headers: { accept: 'application/vnd.github+json' },
  auth: { type: 'bearer' },
  oauth: {
    authorization_endpoint: 'https://github.com/login/oauth/authorize',
    token_endpoint: 'https://github.com/login/oauth/access_token',
    token_endpoint_auth_method: 'client_secret_post',
    account: { url: 'https://api.github.com/user', pointer: '/login' },
  },
  graphql: { path: '/graphql' },
  git_base_url: 'https://github.com',
  scopes: { ...githubCode, ...githubWork, ...githubAdministration, ...githubPeople },
  content_scopes: githubContentScopes,
  app_permissions: githubAppPermissions,
  refs: githubRefs,
  // "Scopes for OAuth apps". Reading public things needs none, so the reading scopes are not listed.
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
  },
} satisfies ManifestInput;
