/** Built-in platforms: `use: github` and others, with an operator's overrides. */
import { z } from 'zod';
import { anthropic } from './builtin/anthropic.ts';
import { github } from './builtin/github.ts';
import { gmail } from './builtin/gmail.ts';
import { googleCalendar } from './builtin/google-calendar.ts';
import { jira } from './builtin/jira.ts';
import { kubernetes } from './builtin/kubernetes.ts';
import { linear } from './builtin/linear.ts';
import { notion } from './builtin/notion.ts';
import { npm } from './builtin/npm.ts';
import { openai } from './builtin/openai.ts';
import { s3 } from './builtin/s3.ts';
import { githubAdministrationSentences } from './builtin/sentences/github-administration.ts';
import { githubCodeSentences } from './builtin/sentences/github-code.ts';
import { githubGraphqlSentences } from './builtin/sentences/github-graphql.ts';
import { githubOrganisationsSentences } from './builtin/sentences/github-organisations.ts';
import { githubWorkSentences } from './builtin/sentences/github-work.ts';
import { gmailSentences, googleCalendarSentences } from './builtin/sentences/google.ts';
import { jiraSentences } from './builtin/sentences/jira.ts';
import { kubernetesSentences } from './builtin/sentences/kubernetes.ts';
import { linearSentences } from './builtin/sentences/linear.ts';
import { anthropicSentences, openaiSentences } from './builtin/sentences/models.ts';
import { notionSentences } from './builtin/sentences/notion.ts';
import { npmSentences } from './builtin/sentences/npm.ts';
import { s3Sentences } from './builtin/sentences/s3.ts';
import { slackSentences } from './builtin/sentences/slack.ts';
import { slackAdministrationSentences } from './builtin/sentences/slack-administration.ts';
import { stripeMinorUnits, stripeSentences } from './builtin/sentences/stripe.ts';
import { stripeSettingsSentences } from './builtin/sentences/stripe-settings.ts';
import { slack } from './builtin/slack.ts';
import { stripe } from './builtin/stripe.ts';
import { BUILTIN_NAMES, type BuiltinName } from './builtin-names.ts';
import { Manifest, type ManifestInput, ManifestOverrides, withOverrides } from './manifest.ts';
import { ManifestFields } from './manifest-fields.ts';

/** The built-in manifests, with the sentences of their calls. */
export const BUILTIN_PLATFORMS: Readonly<Record<BuiltinName, ManifestInput>> = {
  github: {
    ...github,
    sentences: {
      ...githubCodeSentences,
      ...githubWorkSentences,
      ...githubAdministrationSentences,
      ...githubOrganisationsSentences,
      ...githubGraphqlSentences,
    },
  },
  slack: { ...slack, sentences: { ...slackSentences, ...slackAdministrationSentences } },
  gmail: { ...gmail, sentences: gmailSentences },
  'google-calendar': { ...googleCalendar, sentences: googleCalendarSentences },
  notion: { ...notion, sentences: notionSentences },
  linear: { ...linear, sentences: linearSentences },
  jira: { ...jira, sentences: jiraSentences },
  stripe: { ...stripe, sentences: { ...stripeSentences, ...stripeSettingsSentences }, minor_units: stripeMinorUnits },
  openai: { ...openai, sentences: openaiSentences },
  anthropic: { ...anthropic, sentences: anthropicSentences },
  npm: { ...npm, sentences: npmSentences },
  kubernetes: { ...kubernetes, sentences: kubernetesSentences },
  s3: { ...s3, sentences: s3Sentences },
};

/** The entry of a built-in platform, such as `codehost: { use: github, base_url: … }`. */
export const BuiltinUse = ManifestOverrides.extend({
  use: z
    .enum(BUILTIN_NAMES)
    .describe(
      'The built-in platform to start from; every other field overrides one of its fields. A platform of your own has `kind` in its place.',
    ),
}).describe('A built-in platform, under another id, with changes.');

/**
 * Parses the entry of a platform.
 *
 * @returns zod's result: the complete manifest with built-in fields filled in, or issues whose paths are relative to the entry.
 *   (Parsing the union itself would report the issues of both forms.)
 */
export const parsePlatformEntry = (entry: unknown): z.ZodSafeParseResult<Manifest> => parseEntry(entry, Manifest);

/** Parses the entry without the cross-field validation, which takes ten times as long. */
export const parseEntryFields = (entry: unknown): z.ZodSafeParseResult<Manifest> => parseEntry(entry, ManifestFields);

function parseEntry(entry: unknown, schema: z.ZodType<Manifest>): z.ZodSafeParseResult<Manifest> {
  const named = typeof entry === 'object' && entry !== null && Object.hasOwn(entry, 'use');
  if (!named) return schema.safeParse(entry);
  const parsed = BuiltinUse.safeParse(entry);
  if (!parsed.success) return { success: false, error: parsed.error as unknown as z.ZodError<Manifest> };
  const { use, ...overrides } = parsed.data;
  return schema.safeParse(withOverrides(BUILTIN_PLATFORMS[use], overrides));
}
