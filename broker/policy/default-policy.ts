/** The policy that every organisation has from its start. */
import type { RuleSource } from './facts.ts';

export const DEFAULT_POLICY = 'default';

/**
 * "Allow granted reads, hold everything else" (decisions, Deciding). A GET is a read. So is a POST under a scope whose
 * name says so (`linear:issues.read`, `notion:search.read`): GraphQL queries and many searches are POSTs, and whoever
 * wrote the manifest put each operation under its scope on purpose. Other methods are never taken for a read.
 *
 * Rules have no "everything but", so the one for POST has a condition; the others stay without, so that a standing
 * question about what GET, PUT, PATCH and DELETE do has a plain answer.
 */
export const DEFAULT_POLICY_RULES: readonly RuleSource[] = [
  { name: 'reads', effect: 'allow', methods: ['GET'] },
  { name: 'reads sent as POST', effect: 'allow', scopes: ['*.read', '*:read'], methods: ['POST'] },
  { name: 'changes', effect: 'require_approval', methods: ['PUT', 'PATCH', 'DELETE'] },
  {
    name: 'changes sent as POST',
    effect: 'require_approval',
    methods: ['POST'],
    when: "!scope.endsWith('.read') && !scope.endsWith(':read')",
  },
];
