/** Warns of rules that cannot match what their author probably meant. */

import type { Manifest } from '../platforms/manifest.ts';
import { matchesGlob } from '../policy/pattern.ts';
import { didYouMean } from '../runtime/did-you-mean.ts';
import type { Checked } from './check-document.ts';
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

/** Warns of segments such as `:id`, the variable segments of other notations, which here match only that text. */
function checkEndpoints({ endpoints }: Names, path: Path, found: Checked): void {
  endpoints?.forEach((endpoint, j) => {
    const segment = endpoint.split('/').find((one) => one.startsWith(':'));
    if (segment === undefined) return;
    found.warnings.push({
      path: [...path, 'endpoints', j],
      message: `"${segment}" matches only this text. Write \`*\` for a variable segment, not \`:name\`.`,
    });
  });
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
  const warn = (here: Path, what: string, name: string, names: Iterable<string>) =>
    found.warnings.push({
      path: here,
      message: `there is no ${what} "${name}", so this matches nothing.${didYouMean(name, names)}`,
    });
  const check = (names: Names, here: Path): void => {
    names.platforms?.forEach((name, j) => {
      if (!name.includes('*') && !platforms.has(name))
        warn([...here, 'platforms', j], 'platform', name, platforms.keys());
    });
    names.scopes?.forEach((name, j) => {
      // The tools of MCP servers change, so only names with the id of another platform are certain to be wrong.
      const platform = platforms.get(name.slice(0, name.indexOf(':')));
      if (platform ? platform.kind === 'mcp' : anyTools || name.includes('*')) return;
      if (!scopes.some((scope) => matchesGlob(name, scope))) warn([...here, 'scopes', j], 'scope', name, scopes);
    });
  };
  rules.forEach((rule, i) => {
    check(rule, [...path, i]);
    if (rule.after) check(rule.after, [...path, i, 'after']);
  });
}
