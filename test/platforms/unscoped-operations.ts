/** Operations that manifests deliberately omit from all scopes, with the reason: by path; an entry with a method applies to that method only. */

export const githubLeftOut = {
  'answers with a credential, takes one, or revokes the broker’s own': [
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
  'needs the private key of a GitHub App, which only the broker itself uses': [
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
  'exports or imports whole repositories': ['/orgs/*/migrations/**', '/user/migrations/**', '/repos/*/*/import/**'],
  'writes commits or repositories that the call does not name': [
    'POST /repos/*/*/code-scanning/alerts/*/autofix/**',
    'POST /repos/*/*/security-advisories/*/forks',
    '/repos/*/*/stacks/**',
    'POST /repos/*/*/issues/*/suggestions/*/*',
  ],
  'is being closed down, duplicates another operation, or is for classrooms': [
    '/teams/**',
    'POST /orgs/*/*/*',
    'GET /user/*',
    '/assignments/**',
    '/classrooms/**',
  ],
  'is a secret of a person’s codespaces': ['PUT /user/codespaces/secrets/**', 'DELETE /user/codespaces/secrets/**'],
};

/** Methods of Slack. Deprecated methods are in no scope either. */
export const slackLeftOut = {
  'answers with a credential, or with a way in': [
    'oauth.v2.access',
    'oauth.v2.exchange',
    'openid.connect.token',
    'tooling.tokens.rotate',
    'apps.manifest.create',
    'apps.connections.open',
    'rtm.connect',
  ],
  'takes the secret of the app in its parameters': ['apps.uninstall'],
};

export const stripeLeftOut = {
  'answers with a credential, or with a way in': [
    'POST /v1/account_links',
    'POST /v1/account_sessions',
    'POST /v1/accounts/*/login_links',
    'POST /v1/billing_portal/sessions',
    'POST /v1/customer_sessions',
    '/v1/ephemeral_keys/**',
    '/v1/tokens/**',
    '/v1/apps/**',
    '/oauth/**',
    'POST /v1/terminal/connection_tokens',
    'POST /v1/terminal/onboarding_links',
  ],
  'decides to which bank account money goes': [
    'POST /v1/accounts/*/external_accounts/**',
    'DELETE /v1/accounts/*/external_accounts/*',
    'POST /v1/accounts/*/unreject',
  ],
  'contains card numbers, identity documents or bank statements': [
    '/v1/issuing/**',
    '/v1/identity/**',
    '/v1/financial_connections/**',
    '/v1/forwarding/**',
    '/v1/files/**',
    '/v1/file_links/**',
    'GET /v1/quotes/*/pdf',
  ],
  'decides which payments are blocked or recorded as made': [
    'POST /v1/radar/**',
    'DELETE /v1/radar/**',
    'POST /v1/payment_records/**',
    '/v1/three_d_secure/**',
  ],
  'takes JSON, and this manifest sends forms': ['/v2/**'],
  'is a separate product that few accounts use': ['/v1/climate/**'],
};
