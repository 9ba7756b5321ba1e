/**
 * Keys of GitHub itself in answers. "temp_clone_token" of a repository: with it anybody clones a private one, past the broker. A repository stands
 * in answers of more than a hundred operations, such as lists, pull requests and events. "temp_download_token" is one of a runner's program.
 * What is read in bytes of any length (logs, archives, artifacts, files) holds neither, and is not named here: it goes on as it comes.
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
