/** The policy with which every organisation starts. */
import type { RuleSource } from './facts.ts';

export const DEFAULT_POLICY = 'default';

/**
 * "Allow granted reads, hold everything else". A GET is a read. So is a POST under a scope whose name ends in `read`
 * (`linear:issues.read`, `notion:search.read`): GraphQL queries and many searches are POSTs, and manifests assign each operation to its scope deliberately.
 * Other methods never count as a read.
 *
 * Rules cannot be negated, so the one for POST has a condition; the others have none, so that a standing question about GET, PUT, PATCH and DELETE has a
 * definite answer.
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
