/**
 * Which refs the operations of GitHub's REST API write. Sources: GitHub's REST API description (octokit/openapi-types 29) and reference. Operations in
 * neither table are refused on grants that limit refs.
 *
 * Not considered: what GitHub does later by itself, or for somebody else (workflows with a token of their own, merging by a merge queue, `refs/pull/*` of a
 * pull request).
 */
import type { RefDoubtSource, RefPositionSource } from '../../policy/platform-rules.ts';
import { githubProtection } from './github-protection.ts';

type Rule = (RefPositionSource | RefDoubtSource)[] | string;

const branch = (pointer: string, action: RefPositionSource['action']): RefPositionSource => ({
  in: 'body',
  at: pointer,
  prefix: 'refs/heads/',
  action,
});
const TAG: RefPositionSource = { in: 'body', at: '/tag_name', prefix: 'refs/tags/', action: 'create' };
const BEGINS = 'a new repository begins with branches that the call does not name; ask a person to make it';
const BASE = 'the base of a pull request is not in the call; ask a person to merge it';
const HEAD = 'the head of a pull request is not in the call; merge its base into it by git';
const GIST = 'a gist is a separate repository';
const TASK = 'an agent of GitHub writes branches that the call does not name';
/**
 * Logins of GitHub's agents (GitHub documentation, "Asking Copilot to create a pull request", "About third-party agents"), which it accepts with and without
 * `[bot]` at the end.
 */
const AGENTS = ['*[bot]', 'copilot', '*-swe-agent', '*-code-agent', 'claude', 'codex'];
const AGENT_ON = 'it lets an agent of GitHub write branches in more repositories; ask a person to do it';
const ASSIGNED: RefDoubtSource[] = [
  { in: 'body', at: '/agent_assignment', why: TASK },
  { in: 'body', at: '/assignee', values: AGENTS, why: TASK },
  { in: 'body', at: '/assignees', values: AGENTS, why: TASK },
];
/** Collaborators of an advisory may push to its private fork. */
const ADVISORY: RefDoubtSource[] = ['/collaborating_users', '/collaborating_teams'].map((at) => ({
  in: 'body',
  at,
  why: 'a person who works on an advisory may push to its private fork; ask an owner of the repository to add them',
}));
const PRIVATE_FORK: RefDoubtSource[] = [{ in: 'body', at: '/start_private_fork', unless: false, why: BEGINS }];
const DEPENDABOT = 'Dependabot writes branches from then on; ask a person to turn it on';
const CODESPACE = 'from a codespace any branch can be written';
const KEY = 'a holder of the key can push to any branch';
/** "Managing a custom domain": on a branch that is published, setting or removing a domain commits the file `CNAME`. */
const DOMAIN: RefDoubtSource[] = [
  {
    in: 'body',
    at: '/cname',
    why: 'a custom domain is committed to the branch that is published; ask a person to set it',
  },
];

const written: Record<string, Rule> = {
  // Without `branch`, the default branch is written, whose name the call does not contain.
  'PUT /repos/*/*/contents/**': [branch('/branch', 'update')],
  'DELETE /repos/*/*/contents/**': [branch('/branch', 'update')],
  'POST /repos/*/*/git/refs': [{ in: 'body', at: '/ref', action: 'create' }],
  'PATCH /repos/*/*/git/refs/**': [{ in: 'path', prefix: 'refs/', action: 'update' }],
  'DELETE /repos/*/*/git/refs/**': [{ in: 'path', prefix: 'refs/', action: 'delete' }],
  'POST /repos/*/*/branches/**/rename': [
    { in: 'path', prefix: 'refs/heads/', action: 'delete' },
    branch('/new_name', 'create'),
  ],
  'POST /repos/*/*/merges': [branch('/base', 'update')],
  'POST /repos/*/*/merge-upstream': [branch('/branch', 'update')],
  'PUT /repos/*/*/pulls/*/merge': BASE,
  'PUT /repos/*/*/pulls/*/merge-async': BASE,
  'PUT /repos/*/*/pulls/*/update-branch': HEAD,
  // Publishing creates the tag if it does not exist, and editing can publish a draft.
  'POST /repos/*/*/releases': [{ ...TAG, unless: { at: '/draft', is: true } }],
  'PATCH /repos/*/*/releases/*': [TAG],
  // `auto_merge`, on by default, merges the default branch into the deployed branch.
  'POST /repos/*/*/deployments': [{ ...branch('/ref', 'update'), unless: { at: '/auto_merge', is: false } }],
  'PATCH /repos/*/*': 'it may change the default branch; ask a person to do it',
  'DELETE /repos/*/*': 'it deletes every branch and tag',
  'POST /repos/*/*/transfer': 'it removes every branch and tag',
  'POST /repos/*/*/forks': BEGINS,
  'POST /repos/*/*/generate': BEGINS,
  'POST /user/repos': BEGINS,
  'POST /orgs/*/repos': BEGINS,
  'DELETE /orgs/*': 'it deletes every branch and tag',
  'POST /gists': GIST,
  'PATCH /gists/*': GIST,
  'DELETE /gists/*': GIST,
  'POST /gists/*/forks': GIST,
  'POST /repos/*/*/keys': KEY,
  'POST /user/keys': KEY,
  'POST /repos/*/*/issues': ASSIGNED,
  'PATCH /repos/*/*/issues/*': ASSIGNED,
  // GitHub's older reference used POST instead of PATCH here.
  'POST /repos/*/*/issues/*': ASSIGNED,
  'POST /repos/*/*/issues/*/assignees': ASSIGNED,
  'PATCH /repos/*/*/dependabot/alerts/*': ASSIGNED,
  'PATCH /repos/*/*/code-scanning/alerts/*': ASSIGNED,
  'PATCH /repos/*/*/secret-scanning/alerts/*': ASSIGNED,
  'POST /repos/*/*/security-advisories': PRIVATE_FORK,
  'POST /repos/*/*/security-advisories/reports': PRIVATE_FORK,
  'PUT /repos/*/*/pages': DOMAIN,
  'POST /repos/*/*/pages': DOMAIN,
  'PUT /repos/*/*/automated-security-fixes': DEPENDABOT,
  'PATCH /repos/*/*/security-advisories/*': ADVISORY,
  'POST /agents/repos/*/*/tasks': TASK,
  'PUT /orgs/*/copilot/coding-agent/permissions/**': AGENT_ON,
  'POST /user/codespaces': CODESPACE,
  'POST /repos/*/*/codespaces': CODESPACE,
  'POST /repos/*/*/pulls/*/codespaces': CODESPACE,
  'POST /user/codespaces/*/exports': CODESPACE,
  'POST /user/codespaces/*/start': CODESPACE,
  'POST /user/codespaces/*/publish': BEGINS,
};

/** Methods and paths of operations that write no ref. */
const unwritten: [methods: string, ...paths: string[]][] = [
  ['POST', '/git/*/*/git-upload-pack'],
  ['POST', '/repos/*/*/git/blobs', '/repos/*/*/git/commits', '/repos/*/*/git/tags', '/repos/*/*/git/trees'],
  ['POST', '/repos/*/*/commits/*/comments'],
  ['POST PATCH DELETE', '/repos/*/*/comments/**', '/repos/*/*/issues/**'],
  ['PUT', '/repos/*/*/issues/*/labels', '/repos/*/*/issues/*/lock'],
  ['POST PATCH DELETE', '/repos/*/*/labels/**', '/repos/*/*/milestones/**'],
  ['POST', '/repos/*/*/pulls'],
  ['PATCH', '/repos/*/*/pulls/*'],
  ['POST PATCH DELETE', '/repos/*/*/pulls/*/comments/**', '/repos/*/*/pulls/comments/**'],
  ['POST DELETE', '/repos/*/*/pulls/*/requested_reviewers'],
  ['POST PUT DELETE', '/repos/*/*/pulls/*/reviews/**'],
  ['POST', '/repos/*/*/releases/generate-notes', '/repos/*/*/releases/*/assets'],
  ['POST DELETE', '/repos/*/*/releases/*/reactions/**'],
  ['PATCH DELETE', '/repos/*/*/releases/assets/*'],
  // Deleting a release keeps its tag.
  ['DELETE', '/repos/*/*/releases/*'],
  ['POST PATCH', '/repos/*/*/check-runs/**', '/repos/*/*/check-suites/**'],
  ['POST', '/repos/*/*/statuses/*'],
  ['POST', '/repos/*/*/dispatches'],
  ['POST PUT', '/repos/*/*/actions/workflows/*/*'],
  ['POST DELETE', '/repos/*/*/actions/runs/**', '/repos/*/*/actions/jobs/*/rerun'],
  ['DELETE', '/repos/*/*/actions/artifacts/*', '/repos/*/*/actions/caches/**'],
  ['PUT', '/repos/*/*/actions/oidc/customization/sub'],
  ['POST PATCH DELETE', '/repos/*/*/actions/variables/**'],
  ['PUT DELETE', '/repos/*/*/actions/secrets/*', '/repos/*/*/dependabot/secrets/*', '/repos/*/*/codespaces/secrets/*'],
  ['POST PUT PATCH DELETE', '/repos/*/*/environments/*/secrets/*', '/repos/*/*/environments/*/variables/**'],
  ['DELETE', '/repos/*/*/deployments/*'],
  ['POST', '/repos/*/*/deployments/*/statuses'],
  ['POST DELETE', '/repos/*/*/pages/**'],
  ['PUT', '/repos/*/*/topics'],
  ['POST DELETE', '/repos/*/*/autolinks/**'],
  ['DELETE', '/repos/*/*/keys/*'],
  ['PUT DELETE', '/repos/*/*/vulnerability-alerts', '/repos/*/*/private-vulnerability-reporting'],
  ['DELETE', '/repos/*/*/automated-security-fixes'],
  ['PUT DELETE', '/repos/*/*/interaction-limits', '/repos/*/*/subscription'],
  ['POST PATCH DELETE', '/repos/*/*/hooks/**', '/orgs/*/hooks/**'],
  ['DELETE', '/repos/*/*/invitations/*', '/orgs/*/invitations/**'],
  ['PATCH', '/repos/*/*/code-scanning/default-setup'],
  ['POST', '/repos/*/*/code-scanning/sarifs', '/repos/*/*/dependency-graph/snapshots'],
  ['PUT', '/repos/*/*/notifications', '/notifications'],
  ['PUT PATCH DELETE', '/notifications/threads/**'],
  ['POST DELETE', '/user/packages/**', '/users/*/packages/**', '/orgs/*/packages/**'],
  ['POST PATCH DELETE', '/orgs/*/projectsV2/**', '/users/*/projectsV2/**'],
  ['PATCH', '/user', '/user/email/visibility'],
  ['POST DELETE', '/user/emails', '/user/social_accounts', '/user/gpg_keys/**', '/user/ssh_signing_keys/**'],
  ['DELETE', '/user/keys/*'],
  ['PUT DELETE', '/user/following/*', '/user/blocks/*', '/user/starred/*/*'],
  ['PATCH DELETE', '/user/repository_invitations/*'],
  ['POST PATCH DELETE', '/gists/*/comments/**'],
  ['PUT DELETE', '/gists/*/star'],
  ['POST', '/markdown/**'],
  ['PATCH DELETE', '/user/codespaces/*'],
  ['POST', '/user/codespaces/*/stop', '/orgs/*/members/*/codespaces/*/stop'],
  ['DELETE', '/orgs/*/members/*/codespaces/*'],
  ['POST DELETE', '/orgs/*/actions/oidc/customization/properties/**'],
  ['PUT', '/orgs/*/actions/oidc/customization/sub'],
  [
    'POST PUT PATCH DELETE',
    '/orgs/*/actions/hosted-runners/**',
    '/orgs/*/actions/runner-groups/**',
    '/orgs/*/actions/runners/**',
    '/orgs/*/actions/secrets/**',
    '/orgs/*/actions/variables/**',
    '/orgs/*/agents/**',
    '/orgs/*/codespaces/**',
    '/orgs/*/dependabot/**',
  ],
  ['POST PUT PATCH DELETE', '/orgs/*/copilot/**', '/orgs/*/copilot-spaces/**', '/users/*/copilot-spaces/**'],
  ['POST PATCH DELETE', '/orgs/*/campaigns/**', '/orgs/*/settings/network-configurations/**'],
  ['POST PUT PATCH DELETE', '/orgs/*/private-registries/**', '/orgs/*/issue-types/**', '/orgs/*/issue-fields/**'],
  ['PUT PATCH DELETE', '/orgs/*/interaction-limits/**', '/orgs/*/blocks/*'],
  ['PUT DELETE', '/orgs/*/public_members/*', '/user/interaction-limits'],
  ['POST DELETE', '/orgs/*/attestations/**', '/users/*/attestations/**', '/repos/*/*/attestations'],
  ['POST', '/orgs/*/artifacts/**', '/user/*/projectsV2/*/drafts'],
  ['PATCH', '/user/memberships/orgs/*', '/repos/*/*/code-quality/setup'],
  ['PUT', '/organizations/*/actions/cache/*', '/repos/*/*/actions/cache/*', '/repos/*/*/actions/runners/*/labels'],
  ['POST DELETE', '/repos/*/*/actions/runners/**'],
  ['POST PUT PATCH DELETE', '/repos/*/*/agents/**', '/repos/*/*/interaction-limits/**'],
  ['DELETE', '/repos/*/*/code-scanning/analyses/*', '/repos/*/*/code-scanning/codeql/databases/*'],
  ['POST', '/repos/*/*/code-scanning/codeql/variant-analyses'],
  ['POST', '/repos/*/*/security-advisories/*/cve'],
  ['PUT', '/repos/*/*/issues/*/issue-field-values', '/repos/*/*/issues/comments/*/pin'],
];

export const githubRefs: Record<string, Rule> = {
  ...written,
  ...githubProtection,
  ...Object.fromEntries(
    unwritten.flatMap(([methods, ...paths]) =>
      paths.flatMap((path) => methods.split(' ').map((method) => [`${method} ${path}`, []])),
    ),
  ),
};
