/** Names of the built-in platforms, without loading their manifests, so that the command line can list them in its help quickly. */
export const BUILTIN_NAMES = [
  'github',
  'slack',
  'gmail',
  'google-calendar',
  'notion',
  'linear',
  'jira',
  'stripe',
  'openai',
  'anthropic',
  'npm',
  'kubernetes',
  's3',
] as const;
export type BuiltinName = (typeof BUILTIN_NAMES)[number];
