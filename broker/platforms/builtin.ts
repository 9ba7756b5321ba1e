/** Built-in platforms: `use: github` and others, with an operator's overrides. */
import { z } from 'zod';
import { github } from './builtin/github.ts';
import { gmail } from './builtin/gmail.ts';
import { googleCalendar } from './builtin/google-calendar.ts';
import { jira } from './builtin/jira.ts';
import { linear } from './builtin/linear.ts';
import { notion } from './builtin/notion.ts';
import { slack } from './builtin/slack.ts';
import { stripe } from './builtin/stripe.ts';
import { Manifest, type ManifestInput, ManifestOverrides, withOverrides } from './manifest.ts';

export const BUILTIN_NAMES = [
  'github',
  'slack',
  'gmail',
  'google-calendar',
  'notion',
  'linear',
  'jira',
  'stripe',
] as const;
export type BuiltinName = (typeof BUILTIN_NAMES)[number];

export const BUILTIN_PLATFORMS: Readonly<Record<BuiltinName, ManifestInput>> = {
  github,
  slack,
  gmail,
  'google-calendar': googleCalendar,
  notion,
  linear,
  jira,
  stripe,
};

/** `codehost: { use: github, base_url: … }` */
export const BuiltinUse = ManifestOverrides.extend({
  use: z
    .enum(BUILTIN_NAMES)
    .describe('The built-in platform to start from; every other field overrides one of its fields.'),
}).describe('A platform that comes with the broker, under an id of its own, with changes.');

/**
 * Parses the entry of a platform.
 *
 * @returns zod's result: the complete manifest with built-in fields filled in, or issues whose paths are relative to the entry.
 *   (Parsing the union itself would report the issues of both forms.)
 */
export function parsePlatformEntry(entry: unknown): z.ZodSafeParseResult<Manifest> {
  const named = typeof entry === 'object' && entry !== null && Object.hasOwn(entry, 'use');
  if (!named) return Manifest.safeParse(entry);
  const parsed = BuiltinUse.safeParse(entry);
  if (!parsed.success) return { success: false, error: parsed.error as unknown as z.ZodError<Manifest> };
  const { use, ...overrides } = parsed.data;
  return Manifest.safeParse(withOverrides(BUILTIN_PLATFORMS[use], overrides));
}
