/** Operations of GitHub's REST API that are in no scope on purpose, by their path; with a method only that one. */
export const githubLeftOut = {
  'answers with a credential, takes one, or ends the broker’s own': [
    'POST /app-manifests/*/conversions',
    '/applications/**',
    'POST /credentials/revoke',
    'DELETE /installation/token',
    'GET /feeds',
    'POST /orgs/*/actions/runners/*',
    'POST /repos/*/*/actions/runners/*',
    '/orgs/*/personal-access-tokens/**',
    '/orgs/*/personal-access-token-requests/**',
  ],
  'is asked by an App with its own key, which the broker uses for itself alone': [
    '/app/**',
    'GET /orgs/*/installation',
    'GET /repos/*/*/installation',
    'GET /users/*/installation',
    '/marketplace_listing/**',
  ],
  'reaches beyond one organisation, or sells and bills': [
    '/enterprises/**',
    '/organizations/*/settings/billing/**',
    'GET /users/*/settings/billing/**',
    'GET /user/marketplace_purchases/**',
    'PUT /user/installations/*/repositories/*',
    'DELETE /user/installations/*/repositories/*',
  ],
  'takes whole repositories away or brings them in': [
    '/orgs/*/migrations/**',
    '/user/migrations/**',
    '/repos/*/*/import/**',
  ],
  'writes commits or repositories that the call does not name': [
    'POST /repos/*/*/code-scanning/alerts/*/autofix/**',
    'POST /repos/*/*/security-advisories/*/forks',
    '/repos/*/*/stacks/**',
    'POST /repos/*/*/issues/*/suggestions/*/*',
  ],
  'is closing down, has another form, or is for a classroom': [
    '/teams/**',
    'POST /orgs/*/*/*',
    'GET /user/*',
    '/assignments/**',
    '/classrooms/**',
  ],
  'is a secret of a person’s codespaces': ['PUT /user/codespaces/secrets/**', 'DELETE /user/codespaces/secrets/**'],
};
