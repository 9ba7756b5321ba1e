/**
 * Operations that change the rules that protect branches and tags at GitHub, or whom they bind, with the sentence that refuses them on grants that limit
 * refs. None of them writes a ref itself, but an agent that may remove such a rule is no longer bound by it, and a workflow that it pushes never was.
 * Sources: GitHub's REST API description (@octokit/openapi 23.0.2); GitHub documentation, "About rulesets", "About code owners" (without write access, nobody
 * is an owner), "Immutable releases", "About push protection".
 *
 * Not included: operations that satisfy a rule without changing it (reviews, statuses, check runs, approved deployments), which have scopes of their own.
 */
const ASK = 'ask a person to do it';
const RULES = `it changes the rules that protect branches and tags; ${ASK}`;
const CHOSEN = `it changes a property by which rulesets choose repositories; ${ASK}`;
const WORKFLOWS = `it changes what workflows may do, which write with tokens of their own; ${ASK}`;
const DEPLOYING = `it changes which branches are deployed, and who has to agree; ${ASK}`;
const STOPPED = `it changes what GitHub stops in a push; ${ASK}`;
const MEMBERS = `it may change what members may do in every repository; ${ASK}`;
const ACCESS = 'a person who gets access by it may push to any branch; ask an owner of the repository to give it';
const TAKEN = 'who loses access by it may be one whose review a rule requires; ask a person to take it';

/** The sentence, the methods and the paths. */
const protecting: [why: string, methods: string, ...paths: string[]][] = [
  [
    RULES,
    'POST PUT PATCH DELETE',
    '/repos/*/*/branches/**/protection/**',
    '/repos/*/*/rulesets/**',
    '/orgs/*/rulesets/**',
  ],
  [CHOSEN, 'POST PUT PATCH DELETE', '/repos/*/*/properties/**', '/orgs/*/properties/**'],
  // A published immutable release locks its tag.
  [RULES, 'PUT DELETE', '/repos/*/*/immutable-releases', '/orgs/*/settings/immutable-releases/**'],
  [WORKFLOWS, 'PUT DELETE', '/repos/*/*/actions/permissions/**', '/orgs/*/actions/permissions/**'],
  [DEPLOYING, 'PUT DELETE', '/repos/*/*/environments/*'],
  [
    DEPLOYING,
    'POST PUT DELETE',
    '/repos/*/*/environments/*/deployment-branch-policies/**',
    '/repos/*/*/environments/*/deployment_protection_rules/**',
  ],
  [
    STOPPED,
    'POST PATCH DELETE',
    '/repos/*/*/secret-scanning/custom-patterns/**',
    '/repos/*/*/secret-scanning/push-protection-bypasses',
    '/orgs/*/secret-scanning/**',
  ],
  [STOPPED, 'POST PUT PATCH DELETE', '/orgs/*/code-security/**'],
  [MEMBERS, 'PATCH', '/orgs/*'],
  [ACCESS, 'PATCH', '/repos/*/*/invitations/*', '/orgs/*/teams/*', '/orgs/*/organization-roles/**'],
  [ACCESS, 'POST', '/orgs/*/invitations', '/orgs/*/teams/**'],
  [
    ACCESS,
    'PUT',
    '/repos/*/*/collaborators/*',
    '/orgs/*/memberships/*',
    '/orgs/*/teams/**',
    '/orgs/*/organization-roles/**',
    '/orgs/*/security-managers/**',
  ],
  [
    TAKEN,
    'DELETE',
    '/repos/*/*/collaborators/*',
    '/orgs/*/memberships/*',
    '/orgs/*/members/*',
    '/orgs/*/teams/**',
    '/orgs/*/organization-roles/**',
    '/orgs/*/security-managers/**',
  ],
  [TAKEN, 'PUT DELETE', '/orgs/*/outside_collaborators/*'],
];

export const githubProtection: Record<string, string> = Object.fromEntries(
  protecting.flatMap(([why, methods, ...paths]) =>
    paths.flatMap((path) => methods.split(' ').map((method) => [`${method} ${path}`, why])),
  ),
);
