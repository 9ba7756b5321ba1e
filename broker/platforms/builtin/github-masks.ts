/**
 * Keys of GitHub itself in answers. "temp_clone_token" of a repository lets anybody clone a private repository without the broker. A repository is part of
 * the answers of more than a hundred operations, such as lists, pull requests and events. "temp_download_token" is that of a runner's program. Operations
 * with answers of bytes of any length (logs, archives, artifacts, files) contain neither, and are not listed here, so that their answers are streamed.
 */
import type { ManifestInput } from '../manifest.ts';

const OPERATIONS = [
  'GET /events',
  'GET /installation/repositories',
  'GET /issues',
  'GET /networks/**',
  'GET /notifications/**',
  'GET /orgs/**',
  'GET /repositories',
  'GET /search/**',
  'GET /teams/**',
  'GET /user/**',
  'GET /users/**',
  'GET /repos/*/*',
  'GET /repos/*/*/actions/runs',
  'GET /repos/*/*/actions/runs/*',
  'GET /repos/*/*/actions/runs/*/attempts/*',
  'GET /repos/*/*/actions/workflows/*/runs',
  'GET /repos/*/*/check-suites/**',
  'GET /repos/*/*/code-scanning/alerts/**',
  'GET /repos/*/*/codespaces',
  'GET /repos/*/*/commits/**',
  'GET /repos/*/*/events',
  'GET /repos/*/*/forks',
  'GET /repos/*/*/invitations',
  'GET /repos/*/*/issues/**',
  'GET /repos/*/*/notifications',
  'GET /repos/*/*/pulls/**',
  ...['POST', 'PUT', 'PATCH', 'DELETE'].flatMap((method) =>
    ['orgs', 'repos', 'teams', 'user', 'users'].map((first) => `${method} /${first}/**`),
  ),
];

export const githubMasks: NonNullable<ManifestInput['masks']> = {
  ...Object.fromEntries(OPERATIONS.map((operation) => [operation, ['temp_clone_token']])),
  'GET /repos/*/*/actions/runners/**': ['temp_download_token'],
  'GET /orgs/*/actions/runners/**': ['temp_download_token'],
  'query *': ['tempCloneToken'],
  'mutation *': ['tempCloneToken'],
};
