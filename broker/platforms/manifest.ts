/** The manifest of a platform: one schema for built-in platforms and for those in governance.yaml. */
import type { z } from 'zod';
import { foldName } from '../policy/names.ts';
import { compilePlatformRules } from '../policy/operation.ts';
import type { PlatformRules } from '../policy/platform-rules.ts';
import { ManifestFields } from './manifest-fields.ts';
import { manifestProblems } from './manifest-problems.ts';

export const Manifest = ManifestFields.superRefine((manifest, context) => {
  for (const { path, message } of manifestProblems(manifest)) context.addIssue({ code: 'custom', path, message });
}).describe('A platform that agents may call through the broker.');

export type ManifestInput = z.input<typeof Manifest>;
export type Manifest = z.infer<typeof Manifest>;

/** Any field except the kind may be overridden; a built-in manifest's scopes are written for its kind. */
export const ManifestOverrides = ManifestFields.omit({ kind: true }).partial();
export type ManifestOverrides = z.input<typeof ManifestOverrides>;

/**
 * Compiles a manifest to the rules that decisions use.
 *
 * @param manifest accepted by `Manifest`, which then compiles without errors
 * @throws Error with a sentence that begins with the platform's id
 */
export function compileManifest(platformId: string, manifest: Manifest): PlatformRules {
  try {
    return compilePlatformRules(manifest);
  } catch (error) {
    throw new Error(`platform ${platformId}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Returns the base URLs to which calls are sent. Followed redirects may lead to other hosts. */
export const baseUrlsOf = ({
  base_url: base,
  base_urls: others = {},
  git_base_url: git,
}: Pick<Manifest, 'base_url' | 'base_urls' | 'git_base_url'>): string[] => [
  base,
  ...Object.values(others),
  ...(git === undefined ? [] : [git]),
];

/** Fields in which an operator's changes are merged by entry. */
export const MERGED_BY_ENTRY = [
  'scopes',
  'needs',
  'app_permissions',
  'app_operations',
  'recipients',
  'content_scopes',
  'refs',
  'bodies',
  'free',
  'sentences',
  'masks',
  'minor_units',
  'presets',
] as const;

/**
 * Merges a built-in manifest with an operator's changes. Headers (of one kind or the other), scopes, needs, app_permissions, app_operations, recipients,
 * content_scopes, refs, bodies, masks, free, sentences, minor_units and presets are merged by entry (an empty list removes a scope's rules); every other
 * field is replaced. With another origin, the built-in account endpoint, git base URL and base_urls are dropped: they would receive tokens of another
 * platform.
 */
export function withOverrides(builtin: ManifestInput, overrides: ManifestOverrides): ManifestInput {
  const given = Object.fromEntries(Object.entries(overrides).filter(([, value]) => value !== undefined));
  const merged: ManifestInput = { ...builtin, ...given };
  for (const field of MERGED_BY_ENTRY) {
    if (overrides[field] !== undefined) Object.assign(merged, { [field]: { ...builtin[field], ...overrides[field] } });
  }
  const changed = new Set(Object.keys({ ...overrides.headers, ...overrides.default_headers }).map(foldName));
  for (const field of ['headers', 'default_headers'] as const) {
    if (changed.size === 0 || (builtin[field] ?? overrides[field]) === undefined) continue;
    const kept = Object.entries(builtin[field] ?? {}).filter(([name]) => !changed.has(foldName(name)));
    merged[field] = { ...Object.fromEntries(kept), ...overrides[field] };
  }
  if (movesGit(builtin, overrides)) delete merged.git_base_url;
  if (moves(builtin, overrides) && overrides.base_urls === undefined) delete merged.base_urls;
  if (overrides.base_url !== undefined && overrides.oauth === undefined && builtin.oauth?.account !== undefined) {
    const { account, ...rest } = builtin.oauth;
    if (originOf(account.url) !== originOf(overrides.base_url)) merged.oauth = rest;
  }
  return merged;
}

/** A credential of another host must not be sent to the git repositories of the built-in host. */
const movesGit = (builtin: ManifestInput, { base_url, git_base_url }: ManifestOverrides): boolean =>
  git_base_url === undefined && moves(builtin, { base_url });

const moves = (builtin: ManifestInput, { base_url }: ManifestOverrides): boolean =>
  base_url !== undefined && originOf(base_url) !== originOf(builtin.base_url);

const originOf = (url: string): string | undefined => URL.parse(url)?.origin;
