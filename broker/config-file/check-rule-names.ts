/** Warns of rules that cannot match what their author probably meant. */

import type { Manifest } from '../platforms/manifest.ts';
import { matchesGlob } from '../policy/pattern.ts';
import { didYouMean, similarNames } from '../runtime/did-you-mean.ts';
import type { Checked } from './check-document.ts';
import { namedSegmentWarning } from './named-segment.ts';
import type { Path } from './problems.ts';

type Names = {
  platforms?: string[] | undefined;
  scopes?: string[] | undefined;
  endpoints?: readonly string[] | undefined;
};
type Narrowing = Names & { after?: Names | undefined; mask?: { members?: readonly string[] | undefined } | undefined };

/** Warns of members in the notation of JSONPath, which here are names that no answer has: they mask nothing, or something else. */
function checkMasks(rules: readonly Narrowing[], path: Path, found: Checked): void {
  rules.forEach((rule, i) => {
    rule.mask?.members?.forEach((member, j) => {
      if (member.startsWith('/') || !/^\$|\[(?:\d+|\*|'.*'|".*")\]/.test(member)) return;
      found.warnings.push({
        path: [...path, i, 'mask', 'members', j],
        message: `"${member}" is a name here, and not a path. Write a path as "/contacts/*/email", in which "*" is one step and "**" any number.`,
      });
    });
  });
}

function checkEndpoints({ endpoints }: Names, path: Path, found: Checked): void {
  endpoints?.forEach((endpoint, j) => {
    const message = namedSegmentWarning(endpoint);
    if (message !== undefined) found.warnings.push({ path: [...path, 'endpoints', j], message });
  });
}

/**
 * Returns the endings of scopes, such as `*.read`, for which a pattern such as `*.reed` is most likely a misspelling. Another pattern that begins with `*` is
 * about no platform in particular, so it may be meant for those that are added later.
 */
function nearEndings(pattern: string, scopes: readonly string[]): string[] {
  const word = pattern.slice(2);
  const endings = new Set(scopes.map((scope) => `*${/[.:][^.:]*$/.exec(scope)?.[0] ?? ''}`));
  const isKnown = [...endings].some((ending) => ending.slice(2) === word);
  return isKnown ? [] : similarNames(pattern, endings, 1);
}

/** Warns of rules for an unknown platform or scope, which never match: most likely a misspelling, and then the rule protects nothing. */
export function checkRuleNames(
  rules: readonly Narrowing[],
  path: Path,
  { platforms }: { platforms: ReadonlyMap<string, Manifest> | undefined },
  found: Checked,
): void {
  checkMasks(rules, path, found);
  rules.forEach((rule, i) => {
    checkEndpoints(rule, [...path, i], found);
    if (rule.after) checkEndpoints(rule.after, [...path, i, 'after'], found);
  });
  if (platforms === undefined) return;
  const scopes = [...platforms.values()].flatMap((manifest) => Object.keys(manifest.scopes));
  const anyTools = [...platforms.values()].some((manifest) => manifest.kind === 'mcp');
  const scopeNames = [...scopes, ...[...platforms.keys()].map((id) => `${id}:*`)];
  const warn = (here: Path, what: string, name: string, names: Iterable<string>) =>
    found.warnings.push({
      path: here,
      message: `there is no ${what} "${name}", so this matches nothing.${didYouMean(name, names)}`,
    });
  const check = (names: Names, here: Path): void => {
    names.platforms?.forEach((name, j) => {
      if (name !== '*' && ![...platforms.keys()].some((id) => matchesGlob(name, id)))
        warn([...here, 'platforms', j], 'platform', name, platforms.keys());
    });
    names.scopes?.forEach((name, j) => {
      // The tools of MCP servers change, so only names with the id of another platform are certain to be wrong.
      const platform = platforms.get(name.slice(0, name.indexOf(':')));
      if (platform ? platform.kind === 'mcp' : anyTools) return;
      if (scopes.some((scope) => matchesGlob(name, scope))) return;
      const endings = name.startsWith('*') ? nearEndings(name, scopes) : scopeNames;
      if (endings.length > 0 || !name.startsWith('*')) warn([...here, 'scopes', j], 'scope', name, endings);
    });
  };
  rules.forEach((rule, i) => {
    check(rule, [...path, i]);
    if (rule.after) check(rule.after, [...path, i, 'after']);
  });
}
