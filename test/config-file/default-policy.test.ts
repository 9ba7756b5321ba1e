import { describe, expect, it } from 'vitest';
import { BUILTIN_PLATFORMS } from '../../broker/platforms/builtin.ts';
import { BUILTIN_NAMES } from '../../broker/platforms/builtin-names.ts';
import { compileManifest, Manifest } from '../../broker/platforms/manifest.ts';
import { DEFAULT_POLICY_RULES } from '../../broker/policy/default-policy.ts';
import { type AgentFacts, type Ask, type Facts, METHODS, type Method } from '../../broker/policy/facts.ts';
import { compilePolicy } from '../../broker/policy/rules/compile.ts';
import { matchRules } from '../../broker/policy/rules/rules.ts';
import { questionOf } from '../../broker/policy/rules/selection.ts';

const policy = compilePolicy({ id: 'p', name: 'default', version: 1, rules: DEFAULT_POLICY_RULES });
const agent: AgentFacts = {
  id: 'i',
  agentId: 'agt_x',
  name: 'x',
  ownerId: 'o',
  organisationId: 'g',
  status: 'active',
  statusSince: null,
  statusCause: null,
  statusDetail: null,
  expiresAt: null,
};
const facts = (platform?: Facts['platform']): Facts => ({
  agent,
  grants: [],
  guardrails: { version: 0, rules: [] },
  breakers: [],
  ...(platform && { platform }),
});
const match = (ask: Ask, platform?: Facts['platform']) =>
  matchRules(policy.rules, 'policy', questionOf(facts(platform), ask, 0));
const effect = (method: Method, scope: string) =>
  match({ platformId: 'x', scope, call: { method, path: '/x', query: '', headers: {}, body: {} } }).effect;

describe('the policy default', () => {
  it('allows granted reads and holds everything else', () => {
    expect(effect('GET', 'x:contents.write')).toBe('allow');
    expect(effect('GET', 'x:contents.read')).toBe('allow');
    expect(effect('POST', 'x:issues.read')).toBe('allow');
    expect(effect('POST', 'issues:read')).toBe('allow');
    expect(effect('POST', 'x:issues.create')).toBe('require_approval');
    expect(effect('POST', 'x:issues.reader')).toBe('require_approval');
    expect(effect('POST', 'x:read.write')).toBe('require_approval');
  });

  it('never allows a method other than GET and POST, whatever the scope is called', () => {
    for (const method of ['PUT', 'PATCH', 'DELETE'] as const)
      for (const scope of ['x:a.read', 'x:read', 'x:a.write']) expect(effect(method, scope)).toBe('require_approval');
  });

  it('has an effect for every method and scope', () => {
    for (const method of METHODS)
      for (const scope of ['', 'x', 'x:y', '*.read']) expect(effect(method, scope)).toBeDefined();
  });

  it.each(BUILTIN_NAMES)('allows every reading scope of %s, and no scope that writes', (name) => {
    const rules = compileManifest(name, Manifest.parse(withBaseUrl(BUILTIN_PLATFORMS[name])));
    const platform = { platformId: name, name, version: 1, suspended: false, defaultConnectionId: null, rules };
    for (const [scope, operations] of rules.scopes) {
      const standing = match({ platformId: name, scope }, platform);
      const onlyGet = operations.every((operation) => operation.kind === 'http' && operation.method === 'GET');
      const reads = /[.:]read$/.test(scope) || onlyGet;
      if (reads) expect([scope, standing.effect]).toEqual([scope, 'allow']);
      const changes = operations.some((operation) =>
        operation.kind === 'http'
          ? !['GET', 'POST'].includes(operation.method)
          : operation.kind === 'graphql' && operation.operation === 'mutation',
      );
      if (changes && standing.effect === 'allow') expect([scope, standing.conditional]).toEqual([scope, true]);
    }
  });
});

/** Some base URLs are placeholders that every customer replaces. */
function withBaseUrl(manifest: object): object {
  return { ...manifest, base_url: 'https://site.example/api' };
}
