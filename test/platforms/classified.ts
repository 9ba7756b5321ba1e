/** Classifies calls on a built-in platform, configured as an operator would write it. */
import { BUILTIN_PLATFORMS, parsePlatformEntry } from '../../broker/platforms/builtin.ts';
import type { BuiltinName } from '../../broker/platforms/builtin-names.ts';
import { compileManifest, type Manifest } from '../../broker/platforms/manifest.ts';
import type { CallAsk, JsonObject, Method } from '../../broker/policy/facts.ts';
import { classify } from '../../broker/policy/operation.ts';
import type { PlatformRules } from '../../broker/policy/platform-rules.ts';

/** Whether each customer has its own address, so that the manifest has a placeholder, which is refused. */
export const isPlaceholder = (name: BuiltinName): boolean => BUILTIN_PLATFORMS[name].base_url.endsWith('.invalid');

export function entryOf(name: BuiltinName): Record<string, unknown> {
  return isPlaceholder(name) ? { use: name, base_url: 'https://acme.example' } : { use: name };
}

export function manifestOf(name: BuiltinName): Manifest {
  const parsed = parsePlatformEntry(entryOf(name));
  if (!parsed.success) throw parsed.error;
  return parsed.data;
}

export function rulesOf(name: BuiltinName): PlatformRules {
  return compileManifest(name, manifestOf(name));
}

/** A POST of Slack that reads, as its own clients send it: the GET is in one of the same scopes. */
export const isReadOfSlack = (name: string, operations: readonly string[], one: string): boolean =>
  name === 'slack' && operations.includes(one.replace(/^POST /, 'GET '));

export type Classify = (operation: string, body?: JsonObject) => readonly string[] | 'unclassified' | 'malformed';

/** `ask('GET /path')` or, with a body, a POST to the GraphQL endpoint: returns the scopes, or the other kind of classification. */
export function classifierOf(name: BuiltinName): Classify {
  const rules = rulesOf(name);
  return (operation, body) => {
    const [method, path] = operation.split(' ') as [Method, string];
    const call: CallAsk = { method, path, query: '', headers: {}, body };
    const found = classify(rules, call);
    return found.kind === 'classified' ? found.scopes : found.kind;
  };
}
