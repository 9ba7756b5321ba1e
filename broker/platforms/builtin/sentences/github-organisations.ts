/**
 * Sentences for calls of the code host about organisations and their runners, codespaces and Copilot. Operations as in ../github-organisations.ts. The value
 * of a secret is never included.
 */
const REPO = '**{1}/{2}**';

/** Secrets and variables of an organisation, in the same form for four services. */
function perService(of: string, name: string): Record<string, string> {
  return {
    [`PUT /orgs/*/${of}/secrets/*`]: `set the secret **{2}** of ${name} of **{1}**[, for {/visibility} repositories]`,
    [`DELETE /orgs/*/${of}/secrets/*`]: `delete the secret **{2}** of ${name} of **{1}**`,
    [`PUT /orgs/*/${of}/secrets/*/repositories`]: `replace which repositories have the secret **{2}** of ${name} of **{1}**[: **{/selected_repository_ids/*}**]`,
    [`PUT /orgs/*/${of}/secrets/*/repositories/*`]: `give repository **{3}** the secret **{2}** of ${name} of **{1}**`,
    [`DELETE /orgs/*/${of}/secrets/*/repositories/*`]: `take the secret **{2}** of ${name} of **{1}** from repository **{3}**`,
  };
}

function variablesOf(of: string, name: string): Record<string, string> {
  return {
    [`POST /orgs/*/${of}/variables`]: `create the variable[ **{/name}**] of ${name} of **{1}**`,
    [`PATCH /orgs/*/${of}/variables/*`]: `change the variable **{2}** of ${name} of **{1}**`,
    [`DELETE /orgs/*/${of}/variables/*`]: `delete the variable **{2}** of ${name} of **{1}**`,
    [`PUT /orgs/*/${of}/variables/*/repositories`]: `replace which repositories have the variable **{2}** of ${name} of **{1}**[: **{/selected_repository_ids/*}**]`,
    [`PUT /orgs/*/${of}/variables/*/repositories/*`]: `give repository **{3}** the variable **{2}** of ${name} of **{1}**`,
    [`DELETE /orgs/*/${of}/variables/*/repositories/*`]: `take the variable **{2}** of ${name} of **{1}** from repository **{3}**`,
  };
}

/** Spaces of Copilot, of an organisation or a person. */
function spacesOf(of: string): Record<string, string> {
  const space = 'Copilot space {2} of **{1}**';
  return {
    [`POST /${of}/*/copilot-spaces`]: 'create a Copilot space of **{1}**[: *{/name}*]',
    [`PUT /${of}/*/copilot-spaces/*`]: `change ${space}[ to *{/name}*]`,
    [`DELETE /${of}/*/copilot-spaces/*`]: `delete ${space}`,
    [`POST /${of}/*/copilot-spaces/*/*`]: `add to the {3} of ${space}`,
    [`PUT /${of}/*/copilot-spaces/*/collaborators/*/*`]: `change what {3} **{4}** may do in ${space}[ to {/role}]`,
    [`DELETE /${of}/*/copilot-spaces/*/collaborators/*/*`]: `take {3} **{4}** out of ${space}`,
    [`PUT /${of}/*/copilot-spaces/*/resources/*`]: `change resource {3} of ${space}`,
    [`DELETE /${of}/*/copilot-spaces/*/resources/*`]: `take resource {3} out of ${space}`,
    [`POST /${of}/*/attestations/delete-request`]: 'delete attestations of **{1}**[ of {/subject_digests/*}]',
    [`DELETE /${of}/*/attestations/digest/*`]: 'delete the attestations of **{1}** of {2}',
    [`DELETE /${of}/*/attestations/*`]: 'delete attestation **{2}** of **{1}**',
    [`POST /${of}/*/attestations/bulk-list`]: 'list attestations of **{1}**',
  };
}

/** Patterns of secret scanning, in an organisation or a repository. */
function patternsOf(of: string, where: string, last: number): Record<string, string> {
  return {
    [`POST /${of}/secret-scanning/custom-patterns`]: `add a pattern of secrets in ${where}[: *{/name}*]`,
    [`PATCH /${of}/secret-scanning/custom-patterns/*`]: `change pattern {${last}} of secrets in ${where}`,
    [`DELETE /${of}/secret-scanning/custom-patterns`]: `delete patterns of secrets in ${where}`,
  };
}

export const githubOrganisationsSentences: Record<string, string> = {
  ...perService('actions', 'the workflows'),
  ...perService('agents', 'the agents'),
  ...perService('codespaces', 'the codespaces'),
  ...perService('dependabot', 'Dependabot'),
  ...variablesOf('actions', 'the workflows'),
  ...variablesOf('agents', 'the agents'),
  ...spacesOf('orgs'),
  ...spacesOf('users'),
  ...patternsOf('orgs/*', '**{1}**', 2),
  ...patternsOf('repos/*/*', REPO, 3),
  'POST /orgs/*/private-registries': 'add a private registry to **{1}**[: **{/url}**]',
  'PATCH /orgs/*/private-registries/*': 'change the private registry **{2}** of **{1}**[ to **{/url}**]',
  'DELETE /orgs/*/private-registries/*': 'delete the private registry **{2}** of **{1}**',
  'PUT /orgs/*/actions/permissions/**': 'change what actions may run in **{1}**',
  'DELETE /orgs/*/actions/permissions/**': 'take a repository from those whose actions may run in **{1}**',
  'POST /orgs/*/actions/oidc/customization/properties/repo': 'add a property to the identity of workflows of **{1}**',
  'DELETE /orgs/*/actions/oidc/customization/properties/repo/*':
    'take the property **{2}** from the identity of workflows of **{1}**',
  'PUT /orgs/*/actions/oidc/customization/sub': 'change the subject of the identity of workflows of **{1}**',
  'PUT /organizations/*/actions/cache/*': 'change the {2} of caches of **{1}**',
  'PUT /orgs/*/blocks/*': 'block **{2}** in **{1}**',
  'DELETE /orgs/*/blocks/*': 'unblock **{2}** in **{1}**',
  'PUT /orgs/*/codespaces/access': 'change who has codespaces of **{1}**[ to **{/visibility}**]',
  'POST /orgs/*/codespaces/access/selected_users': 'give[ **{/selected_usernames/*}**] codespaces of **{1}**',
  'DELETE /orgs/*/codespaces/access/selected_users': 'take codespaces of **{1}** from[ **{/selected_usernames/*}**]',
  'PUT /orgs/*/interaction-limits': 'limit who may write in **{1}**[ to {/limit}][ for {/expiry}]',
  'DELETE /orgs/*/interaction-limits': 'end the limit of who may write in **{1}**',
  'PATCH /orgs/*/interaction-limits/pulls/creation-cap': 'change how many pull requests people open in **{1}**',
  'POST /orgs/*/issue-fields': 'create a field of issues in **{1}**[: *{/name}*]',
  'PATCH /orgs/*/issue-fields/*': 'change field {2} of issues in **{1}**[ to *{/name}*]',
  'DELETE /orgs/*/issue-fields/*': 'delete field {2} of issues in **{1}**',
  'POST /orgs/*/issue-types': 'create a type of issues in **{1}**[: *{/name}*]',
  'PUT /orgs/*/issue-types/*': 'change type {2} of issues in **{1}**[ to *{/name}*]',
  'DELETE /orgs/*/issue-types/*': 'delete type {2} of issues in **{1}**',
  'PATCH /orgs/*/properties/schema':
    'change the properties of repositories of **{1}**[: {/properties/*/property_name}]',
  'PUT /orgs/*/properties/schema/*': 'set the property **{2}** of repositories of **{1}**',
  'DELETE /orgs/*/properties/schema/*': 'delete the property **{2}** of repositories of **{1}**',
  'PATCH /orgs/*/properties/values': 'set properties of[ **{/repository_names/*}**] in **{1}**',
  'PUT /orgs/*/settings/immutable-releases/**': 'make releases in **{1}** immutable',
  'DELETE /orgs/*/settings/immutable-releases/**': 'let releases of a repository of **{1}** be changed',
  'POST /orgs/*/settings/network-configurations': 'create a network for runners of **{1}**[: *{/name}*]',
  'PATCH /orgs/*/settings/network-configurations/*': 'change network **{2}** for runners of **{1}**',
  'DELETE /orgs/*/settings/network-configurations/*': 'delete network **{2}** for runners of **{1}**',
  'POST /orgs/*/rulesets': 'create the ruleset[ **{/name}**] in **{1}**[, enforcement: {/enforcement}]',
  'PUT /orgs/*/rulesets/*': 'change ruleset **{2}** of **{1}**[, enforcement: {/enforcement}]',
  'DELETE /orgs/*/rulesets/*': 'delete ruleset **{2}** of **{1}**',
  'PUT /orgs/*/organization-roles/teams/*/*': 'give the team **{2}** of **{1}** role **{3}**',
  'DELETE /orgs/*/organization-roles/teams/*': 'take all roles from the team **{2}** of **{1}**',
  'DELETE /orgs/*/organization-roles/teams/*/*': 'take role **{3}** from the team **{2}** of **{1}**',
  'PUT /orgs/*/organization-roles/users/*/*': 'give **{2}** role **{3}** in **{1}**',
  'DELETE /orgs/*/organization-roles/users/*': 'take all roles in **{1}** from **{2}**',
  'DELETE /orgs/*/organization-roles/users/*/*': 'take role **{3}** in **{1}** from **{2}**',
  'PUT /orgs/*/security-managers/teams/*': 'make the team **{2}** security managers of **{1}**',
  'DELETE /orgs/*/security-managers/teams/*': 'no longer have the team **{2}** as security managers of **{1}**',
  'POST /orgs/*/actions/hosted-runners': 'create a hosted runner of **{1}**[: *{/name}*]',
  'PATCH /orgs/*/actions/hosted-runners/*': 'change hosted runner **{2}** of **{1}**',
  'DELETE /orgs/*/actions/hosted-runners/*': 'delete hosted runner **{2}** of **{1}**',
  'DELETE /orgs/*/actions/hosted-runners/images/custom/*': 'delete image **{2}** of runners of **{1}**',
  'DELETE /orgs/*/actions/hosted-runners/images/custom/*/versions/*':
    'delete version **{3}** of image **{2}** of runners of **{1}**',
  'POST /orgs/*/actions/runner-groups': 'create a group of runners of **{1}**[: *{/name}*]',
  'PATCH /orgs/*/actions/runner-groups/*': 'change group **{2}** of runners of **{1}**[ to *{/name}*]',
  'DELETE /orgs/*/actions/runner-groups/*': 'delete group **{2}** of runners of **{1}**',
  'PUT /orgs/*/actions/runner-groups/*/repositories/**':
    'let repositories[ **{/selected_repository_ids/*}**] use group **{2}** of runners of **{1}**',
  'DELETE /orgs/*/actions/runner-groups/*/repositories/*':
    'no longer let repository **{3}** use group **{2}** of runners of **{1}**',
  'PUT /orgs/*/actions/runner-groups/*/runners/**': 'put runners[ **{/runners/*}**] into group **{2}** of **{1}**',
  'DELETE /orgs/*/actions/runner-groups/*/runners/*': 'take runner **{3}** out of group **{2}** of **{1}**',
  'DELETE /orgs/*/actions/runners/*': 'delete runner **{2}** of **{1}**',
  'POST /orgs/*/actions/runners/*/labels': 'label runner **{2}** of **{1}**[ with **{/labels/*}**]',
  'PUT /orgs/*/actions/runners/*/labels': 'replace the labels of runner **{2}** of **{1}**[ by **{/labels/*}**]',
  'DELETE /orgs/*/actions/runners/*/labels/**': 'take labels off runner **{2}** of **{1}**',
  'POST /user/codespaces': 'start a codespace[ for repository {/repository_id}][ on {/ref}]',
  'PATCH /user/codespaces/*': 'change the codespace **{1}**[ to *{/display_name}*][, machine: {/machine}]',
  'DELETE /user/codespaces/*': 'delete the codespace **{1}**',
  'POST /user/codespaces/*/exports': 'push what is in the codespace **{1}** to a branch',
  'POST /user/codespaces/*/publish':
    'make a repository[ **{/name}**] of the codespace **{1}**[, private: **{/private}**]',
  'POST /user/codespaces/*/start': 'start the codespace **{1}**',
  'POST /user/codespaces/*/stop': 'stop the codespace **{1}**',
  'POST /repos/*/*/codespaces': `start a codespace for ${REPO}[ on {/ref}]`,
  'POST /repos/*/*/pulls/*/codespaces': `start a codespace for ${REPO}#{3}`,
  'DELETE /orgs/*/members/*/codespaces/*': 'delete the codespace **{3}** of **{2}** in **{1}**',
  'POST /orgs/*/members/*/codespaces/*/stop': 'stop the codespace **{3}** of **{2}** in **{1}**',
  'POST /agents/repos/*/*/tasks': `give an agent of GitHub a task in ${REPO}[: *{/prompt}*]`,
  'POST /orgs/*/copilot/billing/*': 'give Copilot in **{1}** to[ **{/selected_usernames/*}**| **{/selected_teams/*}**]',
  'DELETE /orgs/*/copilot/billing/*':
    'take Copilot in **{1}** from[ **{/selected_usernames/*}**| **{/selected_teams/*}**]',
  'PUT /orgs/*/copilot/coding-agent/permissions/**':
    'change where agents of GitHub work in **{1}**[ to {/enabled_repositories}]',
  'DELETE /orgs/*/copilot/coding-agent/permissions/repositories/*':
    'no longer let agents of GitHub work in repository **{2}** of **{1}**',
  'PUT /orgs/*/copilot/content_exclusion': 'replace what Copilot may not read in **{1}**',
  'POST /repos/*/*/attestations': `attest an artifact of ${REPO}`,
  'POST /orgs/*/artifacts/metadata/**': 'record where an artifact of **{1}** is[: *{/name}*]',
  'POST /orgs/*/campaigns': 'begin a security campaign in **{1}**[: *{/name}*]',
  'PATCH /orgs/*/campaigns/*': 'change security campaign {2} of **{1}**[, state: {/state}]',
  'DELETE /orgs/*/campaigns/*': 'delete security campaign {2} of **{1}**',
  'POST /orgs/*/code-security/configurations': 'create a security configuration in **{1}**[: *{/name}*]',
  'PATCH /orgs/*/code-security/configurations/*': 'change security configuration {2} of **{1}**',
  'DELETE /orgs/*/code-security/configurations/*': 'delete or detach security configuration {2} of **{1}**',
  'POST /orgs/*/code-security/configurations/*/attach':
    'apply security configuration {2} to repositories of **{1}**[: **{/scope}**]',
  'PUT /orgs/*/code-security/configurations/*/defaults':
    'make security configuration {2} of **{1}** the default[ for {/default_for_new_repos} repositories]',
  'PATCH /orgs/*/dependabot/repository-access': 'change which repositories of **{1}** Dependabot reads',
  'PUT /orgs/*/dependabot/repository-access/default-level':
    'change which repositories of **{1}** Dependabot reads by default[ to {/default_level}]',
  'PATCH /orgs/*/secret-scanning/pattern-configurations': 'change which secrets may not be pushed in **{1}**',
  'POST /repos/*/*/secret-scanning/push-protection-bypasses': `let a secret be pushed to ${REPO}[, because: {/reason}]`,
  'DELETE /repos/*/*/code-scanning/analyses/*': `delete code scanning results **{3}** of ${REPO}`,
  'DELETE /repos/*/*/code-scanning/codeql/databases/*': `delete the CodeQL database of {3} of ${REPO}`,
  'POST /repos/*/*/code-scanning/codeql/variant-analyses': `run a CodeQL query from ${REPO} over other repositories`,
  'PATCH /repos/*/*/code-quality/setup': `change the setup of code quality in ${REPO}[ to {/state}]`,
};
