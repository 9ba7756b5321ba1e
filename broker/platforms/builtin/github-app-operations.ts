/**
 * Operations of GitHub for which an App needs other or further permissions than for the rest of their scope (`githubAppPermissions`): REST API reference,
 * "Permissions required for GitHub Apps", 2026-08. An App without one of these can still serve the rest of the scope, so they are not in the registration
 * form for a new App.
 */
import type { ManifestInput } from '../manifest.ts';

type Permissions = NonNullable<ManifestInput['app_operations']>[string];

/** Assigns the same permissions to each operation. */
const all = (permissions: Permissions, operations: readonly string[]): Record<string, Permissions> =>
  Object.fromEntries(operations.map((one) => [one, permissions]));

/** Assigns one permission: read for operations that read, and write for those that change something. */
const of = (permission: string, operations: readonly string[]): Record<string, Permissions> =>
  Object.fromEntries(
    operations.map((one) => [one, { [permission]: one.startsWith('GET ') ? ('read' as const) : ('write' as const) }]),
  );

/** Operations that read and write secrets of one kind of an organisation. */
const organisationSecrets = (kind: string) => [
  `GET /orgs/*/${kind}/secrets/**`,
  `PUT /orgs/*/${kind}/secrets/**`,
  `DELETE /orgs/*/${kind}/secrets/**`,
];

const repositories = {
  ...of('environments', [
    'GET /repos/*/*/environments/*/secrets/**',
    'PUT /repos/*/*/environments/*/secrets/*',
    'DELETE /repos/*/*/environments/*/secrets/*',
    'GET /repos/*/*/environments/*/variables/**',
    'POST /repos/*/*/environments/*/variables',
    'PATCH /repos/*/*/environments/*/variables/*',
    'DELETE /repos/*/*/environments/*/variables/*',
  ]),
  ...of('dependabot_secrets', [
    'GET /repos/*/*/dependabot/secrets/**',
    'PUT /repos/*/*/dependabot/secrets/*',
    'DELETE /repos/*/*/dependabot/secrets/*',
  ]),
  ...of('codespaces_secrets', ['PUT /repos/*/*/codespaces/secrets/*', 'DELETE /repos/*/*/codespaces/secrets/*']),
  ...of('agent_secrets', [
    'GET /repos/*/*/agents/organization-secrets',
    'GET /repos/*/*/agents/secrets/**',
    'PUT /repos/*/*/agents/secrets/*',
    'DELETE /repos/*/*/agents/secrets/*',
  ]),
  ...of('agent_variables', [
    'GET /repos/*/*/agents/organization-variables',
    'GET /repos/*/*/agents/variables/**',
    'POST /repos/*/*/agents/variables',
    'PATCH /repos/*/*/agents/variables/*',
    'DELETE /repos/*/*/agents/variables/*',
  ]),
  ...of('repository_advisories', [
    'GET /repos/*/*/security-advisories',
    'GET /repos/*/*/security-advisories/*',
    'POST /repos/*/*/security-advisories',
    'POST /repos/*/*/security-advisories/reports',
    'PATCH /repos/*/*/security-advisories/*',
    'POST /repos/*/*/security-advisories/*/cve',
  ]),
  ...of('code_quality', ['GET /repos/*/*/code-quality/findings', 'GET /repos/*/*/code-quality/findings/*']),
  ...of('secret_scanning_alerts', [
    'POST /repos/*/*/secret-scanning/custom-patterns',
    'PATCH /repos/*/*/secret-scanning/custom-patterns/*',
    'DELETE /repos/*/*/secret-scanning/custom-patterns',
  ]),
  ...of('administration', [
    'GET /repos/*/*/teams',
    'GET /repos/*/*/invitations',
    'GET /repos/*/*/environments/*/deployment_protection_rules/apps',
    'GET /repos/*/*/code-security-configuration',
    'GET /repos/*/*/code-scanning/default-setup',
    'PATCH /repos/*/*/code-scanning/default-setup',
    'PATCH /repos/*/*/code-quality/setup',
  ]),
  ...of('actions', [
    'GET /repos/*/*/actions/cache/storage-limit',
    'GET /repos/*/*/actions/oidc/customization/sub',
    'PUT /repos/*/*/actions/oidc/customization/sub',
  ]),
  ...of('contents', [
    'GET /repos/*/*/activity',
    'GET /repos/*/*/community/profile',
    'GET /repos/*/*/code-scanning/codeql/databases/**',
    'DELETE /repos/*/*/code-scanning/codeql/databases/*',
    'GET /repos/*/*/code-scanning/codeql/variant-analyses/**',
    'POST /repos/*/*/code-scanning/codeql/variant-analyses',
    'POST /repos/*/*/dependency-graph/snapshots',
  ]),
  ...of('attestations', ['GET /repos/*/*/attestations/*', 'GET /orgs/*/attestations/repositories']),
  ...of('codespaces_metadata', ['GET /repos/*/*/codespaces/devcontainers', 'GET /repos/*/*/codespaces/machines']),
  ...of('copilot_agent_settings', ['GET /repos/*/*/copilot/cloud-agent/configuration']),
  ...of('repository_custom_properties', ['PATCH /repos/*/*/properties/values']),
  ...all({ administration: 'write', pages: 'write' }, [
    'POST /repos/*/*/pages',
    'PUT /repos/*/*/pages',
    'DELETE /repos/*/*/pages',
  ]),
};

const organisations = {
  ...of('organization_hooks', [
    'GET /orgs/*/hooks/**',
    'POST /orgs/*/hooks/**',
    'PATCH /orgs/*/hooks/**',
    'DELETE /orgs/*/hooks/*',
  ]),
  ...of('organization_secrets', ['GET /orgs/*/actions/secrets/**']),
  ...of('organization_dependabot_secrets', organisationSecrets('dependabot')),
  ...of('organization_codespaces_secrets', organisationSecrets('codespaces')),
  ...of('organization_agent_secrets', organisationSecrets('agents')),
  ...of('organization_private_registries', [
    'GET /orgs/*/private-registries/**',
    'POST /orgs/*/private-registries',
    'PATCH /orgs/*/private-registries/*',
    'DELETE /orgs/*/private-registries/*',
  ]),
  ...of('organization_actions_variables', ['GET /orgs/*/actions/variables/**']),
  ...of(
    'organization_agent_variables',
    ['GET', 'POST', 'PATCH', 'PUT', 'DELETE'].map((method) => `${method} /orgs/*/agents/variables/**`),
  ),
  ...of('organization_self_hosted_runners', ['GET /orgs/*/actions/runner-groups/**', 'GET /orgs/*/actions/runners/**']),
  ...of('organization_runner_custom_images', [
    'GET /orgs/*/actions/hosted-runners/images/custom/**',
    'DELETE /orgs/*/actions/hosted-runners/images/custom/**',
  ]),
  ...of('organization_administration', [
    'POST /orgs/*/actions/hosted-runners',
    'PATCH /orgs/*/actions/hosted-runners/*',
    'DELETE /orgs/*/actions/hosted-runners/*',
    'PUT /orgs/*/security-managers/teams/*',
    'DELETE /orgs/*/security-managers/teams/*',
    'GET /orgs/*/secret-scanning/custom-patterns',
    'GET /orgs/*/secret-scanning/pattern-configurations',
  ]),
  ...of('members', [
    'GET /orgs/*/failed_invitations',
    'GET /orgs/*/organization-roles/*/teams',
    'GET /orgs/*/organization-roles/*/users',
  ]),
  ...all({ administration: 'write', members: 'read' }, [
    'PUT /orgs/*/teams/*/repos/*/*',
    'DELETE /orgs/*/teams/*/repos/*/*',
  ]),
  ...of('organization_custom_org_roles', ['GET /orgs/*/organization-roles', 'GET /orgs/*/organization-roles/*']),
  ...of('organization_custom_properties', ['GET /orgs/*/properties/**', 'PATCH /orgs/*/properties/values']),
  ...all({ organization_custom_properties: 'admin' }, [
    'PATCH /orgs/*/properties/schema',
    'PUT /orgs/*/properties/schema/*',
    'DELETE /orgs/*/properties/schema/*',
  ]),
  ...of('organization_network_configurations', [
    'GET /orgs/*/settings/network-configurations/**',
    'GET /orgs/*/settings/network-settings/*',
    'POST /orgs/*/settings/network-configurations',
    'PATCH /orgs/*/settings/network-configurations/*',
    'DELETE /orgs/*/settings/network-configurations/*',
  ]),
  ...of('organization_user_blocking', ['GET /orgs/*/blocks/**', 'PUT /orgs/*/blocks/*', 'DELETE /orgs/*/blocks/*']),
  ...of('organization_api_insights', ['GET /orgs/*/insights/api/**']),
  ...of('organization_campaigns', [
    'GET /orgs/*/campaigns/**',
    'POST /orgs/*/campaigns',
    'PATCH /orgs/*/campaigns/*',
    'DELETE /orgs/*/campaigns/*',
  ]),
  ...of('artifact_metadata', [
    'GET /orgs/*/artifacts/metadata/deployment-record/cluster/*/jobs/*',
    'GET /orgs/*/artifacts/*/metadata/deployment-records',
    'GET /orgs/*/artifacts/*/metadata/storage-records',
    'POST /orgs/*/artifacts/metadata/**',
  ]),
  ...of('issue_fields', [
    'GET /orgs/*/issue-fields',
    'POST /orgs/*/issue-fields',
    'PATCH /orgs/*/issue-fields/*',
    'DELETE /orgs/*/issue-fields/*',
  ]),
  ...of('issue_types', [
    'GET /orgs/*/issue-types',
    'POST /orgs/*/issue-types',
    'PUT /orgs/*/issue-types/*',
    'DELETE /orgs/*/issue-types/*',
  ]),
  ...of('organization_codespaces_settings', [
    'PUT /orgs/*/codespaces/access',
    'POST /orgs/*/codespaces/access/selected_users',
    'DELETE /orgs/*/codespaces/access/selected_users',
  ]),
  ...all({ organization_codespaces: 'write', codespaces_lifecycle_admin: 'write' }, [
    'POST /orgs/*/members/*/codespaces/*/stop',
  ]),
  ...of('organization_copilot_agent_settings', [
    'GET /orgs/*/copilot/coding-agent/permissions/**',
    'PUT /orgs/*/copilot/coding-agent/permissions/**',
    'DELETE /orgs/*/copilot/coding-agent/permissions/**',
  ]),
  ...of('organization_copilot_metrics', ['GET /orgs/*/copilot/metrics/reports/**']),
  ...of('org_copilot_content_exclusion', [
    'GET /orgs/*/copilot/content_exclusion',
    'PUT /orgs/*/copilot/content_exclusion',
  ]),
  ...of('organization_copilot_spaces', [
    'GET /orgs/*/copilot-spaces',
    'GET /orgs/*/copilot-spaces/*',
    'GET /orgs/*/copilot-spaces/*/resources/**',
    'POST /orgs/*/copilot-spaces',
    'PUT /orgs/*/copilot-spaces/*',
    'DELETE /orgs/*/copilot-spaces/*',
    'POST /orgs/*/copilot-spaces/*/resources',
    'PUT /orgs/*/copilot-spaces/*/resources/*',
    'DELETE /orgs/*/copilot-spaces/*/resources/*',
  ]),
};

// Deliberately omitted, because the token of a read is never a token to write, and GitHub requires a write permission for these: rulesets of organisations,
// histories of rulesets, and GET of `pages/health`, `code-quality/setup`, `interaction-limits/pulls/…`, `codespaces/secrets`, `pulls/…/merge-async/…`,
// `stargazers` and `subscribers` of a repository, and of `security-advisories` and `interaction-limits/pulls/creation-cap` of an organisation. `POST
// /repos/*/*/dispatches` is omitted for the reason at `codehost:actions.write`. Public content needs no permission: keys, stars and subscriptions of users,
// and Markdown.
export const githubAppOperations = { ...repositories, ...organisations } satisfies ManifestInput['app_operations'];
